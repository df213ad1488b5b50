"""A scope for what looks nothing up."""

from engram.services.auth.scope import LOCAL, Scope
from engram.storage.corpus.collections import Collection

ANYWHERE = Scope(LOCAL, Collection(1, "anywhere", "some", "5" * 64, 384, 0, 0, 0, 0, "full"))
