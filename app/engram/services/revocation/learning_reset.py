"""Forgetting: take a collection back to the day before its first verdict."""

from collections.abc import Sequence

import structlog

from engram.services.auth.scope import Scope
from engram.services.revocation.derived_state import DerivedState
from engram.storage.corpus import kinds
from engram.storage.database import Database
from engram.storage.maintenance import staged_embeddings
from engram.storage.revocation import learned_state

log = structlog.get_logger(__name__)


class LearningResetService:
    """Removes what verdicts taught; passages, sentences and entities stay as they are."""

    def __init__(self, database: Database, derived: Sequence[DerivedState]) -> None:
        self._database = database
        self._derived = derived

    def reset(self, scope: Scope) -> None:
        """Remove every episode, verdict and learned state of a collection, all at once or not at all.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
        """
        target = scope.collection
        with self._database.write() as writer:
            removed = learned_state.delete_all(writer, target.id)
            for state in self._derived:
                removed |= state.clear(writer, target.id)
            staged_embeddings.forget_texts(writer, target.id)
            kinds.forget_questions(writer, target.id)
        log.info("learned state removed", collection=target.name, **removed)
