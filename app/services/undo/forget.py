"""Forgetting: take a collection back to the day before its first verdict."""

import structlog

from app.services.access.scope import Scope
from app.storage.database import Database
from app.storage.undo import learned
from app.storage.upkeep import spare_vectors

log = structlog.get_logger(__name__)


class ForgetService:
    """Removes what verdicts taught; passages, sentences and entities stay as they are."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def reset(self, scope: Scope) -> None:
        """Remove every episode, verdict and learned state of a collection, all at once or not at all.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
        """
        target = scope.collection
        with self._database.write() as writer:
            removed = learned.delete_all(writer, target.id)
            spare_vectors.forget_texts(writer, target.id)
        log.info("learned state removed", collection=target.name, **removed)
