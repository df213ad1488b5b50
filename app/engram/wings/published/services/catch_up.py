"""Learning of verdicts that came while their collection did not learn."""

import structlog

from engram.context.errors import EmbeddingSpaceMismatchError, NotFoundError, UnavailableError
from engram.storage.corpus import collections
from engram.storage.database import Database
from engram.storage.feedback_log import feedback_events
from engram.wings.published.services import memory_rewriting
from engram.wings.published.services.attribution import Attribution
from engram.wings.published.storage import evolved_keys, key_evidence_log, memory_log

log = structlog.get_logger(__name__)

BATCH = 50
"""Verdicts that one transaction learns from; learning in their collection waits for it."""


class CatchUpService:
    """Teaches memories and keys from the log what verdicts have not taught them yet."""

    def __init__(self, database: Database, attribution: Attribution) -> None:
        self._database = database
        self._attribution = attribution

    def run(self) -> int:
        """Learn from a batch in each collection that learns again; how many verdicts it learned from.

        A collection whose encoder is not here waits for a worker that has it.

        Raises:
            UnavailableError: Postgres is out of reach.
        """
        with self._database.read() as reader:
            behind = evolved_keys.list_behind(reader)
        learned = 0
        for collection_id in behind:
            try:
                learned += self.learn_batch(collection_id)
            except NotFoundError:
                continue  # it was deleted meanwhile
            except EmbeddingSpaceMismatchError as error:
                log.warning("verdicts not credited to keys", collection_id=collection_id, error=error.detail)
        return learned

    def learn_batch(self, collection_id: int) -> int:
        """Learn from the first ``BATCH`` verdicts that did not teach memories, or else keys.

        While it lasts, no event of the collection is applied or revoked.

        Returns:
            How many they were.

        Raises:
            NotFoundError: the collection is gone.
            EmbeddingSpaceMismatchError: its vectors are of another encoder.
            UnavailableError: its vectors were exchanged meanwhile.
        """
        return self._move_memories(collection_id) or self._credit(collection_id)

    def _move_memories(self, collection_id: int) -> int:
        with self._database.write() as writer:
            if not collections.lock_against_deletion(writer, collection_id):
                return 0
            collections.lock_learning(writer, collection_id, exclusive=True)
            waiting = memory_log.list_untaught(writer, collection_id, BATCH)
            if waiting:
                memory_rewriting.teach_events(writer, collection_id, waiting)
        if waiting:
            log.info("verdicts taught to memories", collection_id=collection_id, events=len(waiting))
        return len(waiting)

    def _credit(self, collection_id: int) -> int:
        with self._database.read() as reader:
            wanted = key_evidence_log.list_uncredited(reader, collection_id, BATCH)
        prepared = self._attribution.prepare(collection_id, wanted)
        if not prepared.is_taught:
            return 0
        with self._database.write() as writer:
            if not collections.lock_against_deletion(writer, collection_id):
                return 0
            collections.lock_learning(writer, collection_id, exclusive=True)
            if prepared.space not in {None, collections.load_by_id(writer, collection_id).space}:
                raise UnavailableError("The vectors of the collection were exchanged meanwhile.")
            waiting = key_evidence_log.list_uncredited(writer, collection_id, BATCH)
            if not waiting and not memory_log.list_untaught(writer, collection_id, 1):
                evolved_keys.lock(writer, collection_id)
                evolved_keys.clear_behind(writer, collection_id)
                return 0
            events = feedback_events.load_applied(
                writer, collection_id, [event for event in waiting if event in set(wanted)]
            )
            self._attribution.credit(writer, collection_id, events, prepared.units)
        log.info("verdicts credited to keys", collection_id=collection_id, events=len(events))
        return len(events)
