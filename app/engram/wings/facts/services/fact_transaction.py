"""Beginning of every change of facts: a transaction, its lock, and an event of the log under its key."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from engram.context.errors import IdempotencyConflictError, NotFoundError
from engram.core.learning.noise_and_caps import NoiseAndCaps
from engram.services.auth.scope import Scope
from engram.storage.corpus import collections
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database, Reader, Writer
from engram.storage.learning import judges
from engram.wings.facts.services.fact_learning import as_source
from engram.wings.facts.storage import fact_events, fact_graph, fact_standings
from engram.wings.facts.storage.fact_events import NewFactEvent, StoredFactEvent
from engram.wings.facts.storage.fact_graph import OWN_GRAPH


@contextmanager
def begin_change(database: Database, scope: Scope) -> Iterator[tuple[Writer, int]]:
    """Begin a transaction that has a collection's facts to itself; yields it and the collection's id.

    Raises:
        NotFoundError: the collection was deleted meanwhile.
    """
    with begin_collection_change(database, scope.collection) as change:
        yield change


@contextmanager
def begin_collection_change(database: Database, target: Collection) -> Iterator[tuple[Writer, int]]:
    """Begin a change of a collection that is already resolved."""
    with database.write() as writer:
        if not collections.lock_against_deletion(writer, target.id):
            raise collections.build_gone_error(target.name)
        fact_graph.lock(writer, target.id)
        yield writer, target.id


def find_graph_id(reader: Reader, collection_id: int, name: str | None) -> int:
    """The graph of this name; None: the collection's own.

    Raises:
        NotFoundError: there is none.
    """
    if name is None:
        return OWN_GRAPH
    graph_id = fact_graph.find_graph(reader, collection_id, name)
    if graph_id is None:
        raise NotFoundError(f"There is no graph of facts {name!r}.")
    return graph_id


@dataclass(frozen=True, slots=True)
class Author:
    """Author of a change, with its standing and the request's key.

    Attributes:
        judge: or source.
        constants: by which it counts.
        key: the Idempotency-Key; None: there is none.
        digest: of the request, which a repeated key must match.
        principal: whose key it is.
    """

    judge: str
    constants: NoiseAndCaps
    key: str | None
    digest: bytes
    principal: str

    @classmethod
    def from_judge(
        cls,
        reader: Reader,
        scope: Scope,
        judge: tuple[str, bool],
        constants: NoiseAndCaps,
        key: str | None,
        body: Any,
    ) -> "Author":
        """With what is set for the judge, and as far as it is trusted.

        Args:
            judge: its name, and whether it is trusted by whose request this is (``Scope.judge``).
        """
        name, trusted = judge
        own = judges.find(reader, scope.collection.id, [name]).get(name)
        counts = constants if own is None else own.adapt(constants)
        if not trusted and not (own is not None and own.trusted):
            counts = counts.adapt_to_standing(
                fact_standings.load_standing(reader, scope.collection.id, name, datetime.now(UTC).date())
            )
        return cls(name, counts, key, _digest(body), scope.principal.name)

    @classmethod
    def source(cls, scope: Scope, name: str, constants: NoiseAndCaps, key: str | None, body: Any) -> "Author":
        """Return the author for a source; settings of a judge with the same name do not count."""
        return cls(name, constants, key, _digest(body), scope.principal.name)

    def adapt_to_source(self) -> "Author":
        """Return the author as the source of its own statement."""
        return replace(self, constants=as_source(self.constants))

    def add_place(self, place: int) -> "Author":
        """For one of several events of one request."""
        return replace(self, key=None if self.key is None else f"{self.key}#{place}")

    def find_repeated_event(self, reader: Reader, collection_id: int) -> StoredFactEvent | None:
        """The event that the same request brought before.

        Raises:
            IdempotencyConflictError: the key was used before with another request.
        """
        known = (
            None if self.key is None else fact_events.find_by_key(reader, collection_id, self.principal, self.key)
        )
        if known is not None and known.body_hash != self.digest:
            raise IdempotencyConflictError("The Idempotency-Key was used before with another request.")
        return known

    def append(
        self, writer: Writer, collection_id: int, graph_id: int, kind: str, confidence: float = 1.0, **more: Any
    ) -> StoredFactEvent:
        """Append an event."""
        constants = self.constants
        surety = confidence * constants.standing
        return fact_events.append(
            writer,
            collection_id,
            NewFactEvent(
                graph_id=graph_id,
                kind=kind,
                judge=self.judge,
                principal=self.principal,
                idempotency_key=self.key or uuid4().hex,
                body_hash=self.digest,
                positive=constants.positive / surety,
                negative=constants.negative / surety,
                process_noise=constants.process,
                share=constants.share,
                contested_share=constants.contested,
                standing=constants.standing,
                **more,
            ),
        )


def _digest(body: Any) -> bytes:
    return hashlib.sha256(json.dumps(body, ensure_ascii=False, sort_keys=True).encode()).digest()
