"""Credit of verdicts that came while the keys of their collection did not learn."""

import structlog

from engram.context.errors import EmbeddingSpaceMismatchError, NotFoundError, UnavailableError
from engram.storage.corpus import collections
from engram.storage.database import Database
from engram.storage.feedback_log import feedback_events
from engram.wings.published.services.attribution import Attribution
from engram.wings.published.storage import evolved_keys, key_evidence_log

log = structlog.get_logger(__name__)

BATCH = 50
"""Verdicts that one transaction credits; learning in their collection waits for it."""


class KeyCatchUpService:
    """Credits from the log what verdicts have not taught keys yet."""

    def __init__(self, database: Database, attribution: Attribution) -> None:
        self._database = database
        self._attribution = attribution

    def run(self) -> int:
        """Credit a batch in each collection whose keys learn again; how many verdicts were credited.

        A collection whose encoder is not here waits for a worker that has it.

        Raises:
            UnavailableError: Postgres is out of reach.
        """
        with self._database.read() as reader:
            behind = evolved_keys.list_behind(reader)
        credited = 0
        for collection_id in behind:
            try:
                credited += self.credit_batch(collection_id)
            except NotFoundError:
                continue  # it was deleted meanwhile
            except EmbeddingSpaceMismatchError as error:
                log.warning("verdicts not credited to keys", collection_id=collection_id, error=error.detail)
        return credited

    def credit_batch(self, collection_id: int) -> int:
        """Credit the first ``BATCH`` verdicts of the collection that are not credited; how many they were.

        While it lasts, no event of the collection is applied or revoked.

        Raises:
            NotFoundError: the collection is gone.
            EmbeddingSpaceMismatchError: its vectors are of another encoder.
            UnavailableError: its vectors were exchanged meanwhile.
        """
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
            if not waiting:
                evolved_keys.lock(writer, collection_id)
                evolved_keys.clear_behind(writer, collection_id)
                return 0
            events = feedback_events.load_applied(
                writer, collection_id, [event for event in waiting if event in set(wanted)]
            )
            self._attribution.credit(writer, collection_id, events, prepared.units)
        log.info("verdicts credited to keys", collection_id=collection_id, events=len(events))
        return len(events)
