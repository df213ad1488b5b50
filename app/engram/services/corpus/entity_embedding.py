"""Embedding the names that passages brought, once the passages can be found.

Most names that questions mention are met by name or by spelling. The others are compared by embedding, with what is
embedded by then, and nobody waits for that.
"""

from collections.abc import Callable

import structlog

from engram.context.errors import EmbeddingError, EmbeddingSpaceMismatchError, EmbeddingUnavailableError
from engram.services.encoders.encoder import Encoder
from engram.storage.corpus import pending_entity_names
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database
from engram.telemetry.stages import stage

log = structlog.get_logger(__name__)

BATCH = 256
"""Names of one transaction."""
NAMES_PER_TURN = 64
"""Names at a time while passages come in, whose turn it is: a second's work of one core is 300."""


class EntityEmbedder:
    """Gives entities their embeddings."""

    def __init__(self, database: Database, encoder: Encoder) -> None:
        self._database = database
        self._encoder = encoder

    def run(
        self,
        should_stop: Callable[[], bool] = lambda: False,
        *,
        collection_id: int | None = None,
        one_thread: bool = False,
    ) -> int:
        """Embed all names that wait, of collections that this process's encoder made the vectors of; how many.

        Args:
            should_stop: polled between batches.
            collection_id: those of this collection only.
            one_thread: leave them to another process that is at it, and stop early while an ingest is in hand.

        Raises:
            UnavailableError: Postgres cannot be reached.
        """
        self._encoder.identify()
        with self._database.read() as reader:
            waiting = pending_entity_names.collections_waiting(reader, self._encoder.fingerprints, collection_id)
        if not waiting:
            return 0
        if not one_thread:
            return sum(self._name(collection, should_stop, one_thread=False) for collection in waiting)
        with self._database.hold_lock("names") as is_locked:
            if not is_locked:
                return 0
            return sum(self._name(collection, should_stop, one_thread=True) for collection in waiting)

    def _name(self, collection: Collection, should_stop: Callable[[], bool], *, one_thread: bool) -> int:
        named, after, busy = 0, 0, False
        while not should_stop() and not busy:
            with self._database.read() as reader:
                busy = one_thread and pending_entity_names.is_ingesting(reader)
                names = pending_entity_names.list_next(
                    reader, collection.id, after, NAMES_PER_TURN if busy else BATCH
                )
            if not names:
                break
            with stage("names"):
                try:
                    vectors = self._encoder.embed(collection, [name.surface for name in names])
                except (EmbeddingUnavailableError, EmbeddingError, EmbeddingSpaceMismatchError) as error:
                    log.warning("names left for later", collection=collection.name, reason=error.detail)
                    break
                with self._database.write() as writer:
                    named += pending_entity_names.give(writer, collection, names, vectors)
            after = names[-1].id
        if named:
            log.info("names embedded", collection=collection.name, names=named)
        return named
