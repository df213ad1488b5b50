"""A scope for what looks nothing up."""

from app.services.access.scope import LOCAL, Scope
from app.storage.corpus.collections import Collection

ANYWHERE = Scope(LOCAL, Collection(1, "anywhere", "some", "5" * 64, 0, 0, 0, 0, "full"))
