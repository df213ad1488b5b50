"""Forgetting: take a collection back to the day before its first verdict."""

import structlog

from app.storage.corpus import collections
from app.storage.database import Database
from app.storage.undo import learned

log = structlog.get_logger(__name__)


class ForgetService:
    """Removes what verdicts taught; passages, sentences and entities stay as they are."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def reset(self, collection: str) -> None:
        """Remove every episode, verdict and learned state of a collection, all at once or not at all.

        Raises:
            NotFoundError: there is no such collection.
        """
        with self._database.write() as writer:
            target = collections.find(writer, collection)
            removed = learned.delete_all(writer, target.id)
        log.info("learned state removed", collection=collection, **removed)
