"""The log of what callers said of facts: assertions with their sentences, revisions, and entities that joined."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.storage.database import Reader, Writer
from app.storage.lookups import WANTED, each


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An event to append; see ``storage.tables.facts``."""

    graph_id: int
    kind: str
    judge: str
    idempotency_key: str
    body_hash: bytes
    positive: float
    negative: float
    process_noise: float
    share: float
    contested_share: float
    standing: float
    fact_id: int | None = None
    other_id: int | None = None
    entity_id: int | None = None
    valid_until: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event of the log; ``revoked_at`` says since when it counts no more."""

    id: int
    graph_id: int
    kind: str
    judge: str
    idempotency_key: str
    body_hash: bytes
    fact_id: int | None
    other_id: int | None
    entity_id: int | None
    valid_until: int | None
    reason: str | None
    status: str
    sequence: int
    received_at: datetime
    revoked_at: datetime | None


_COLUMNS = (
    "id, graph_id, kind, judge, idempotency_key, body_hash, fact_id, other_id, entity_id, valid_until, reason, "
    "status, sequence, received_at, revoked_at"
)


def append(writer: Writer, collection_id: int, event: NewEvent) -> StoredEvent:
    """Append an event; called under the lock, by which no other has its key meanwhile."""
    row = writer.row(
        f"""
        INSERT INTO fact_event (collection_id, graph_id, kind, judge, idempotency_key, body_hash, fact_id, other_id,
            entity_id, valid_until, reason, sequence, observation_noise_positive, observation_noise_negative,
            process_noise, daily_share, contested_share, standing)
        VALUES (%(collection)s, %(graph)s, %(kind)s, %(judge)s, %(key)s, %(hash)s, %(fact)s, %(other)s, %(entity)s,
            %(until)s, %(reason)s, nextval('fact_said'), %(positive)s, %(negative)s, %(process)s, %(share)s,
            %(contested)s, %(standing)s)
        RETURNING {_COLUMNS}
        """,
        {
            "collection": collection_id,
            "graph": event.graph_id,
            "kind": event.kind,
            "judge": event.judge,
            "key": event.idempotency_key,
            "hash": event.body_hash,
            "fact": event.fact_id,
            "other": event.other_id,
            "entity": event.entity_id,
            "until": event.valid_until,
            "reason": event.reason,
            "positive": event.positive,
            "negative": event.negative,
            "process": event.process_noise,
            "share": event.share,
            "contested": event.contested_share,
            "standing": event.standing,
        },
    )
    return _event(row)


def by_key(reader: Reader, collection_id: int, key: str) -> StoredEvent | None:
    """The event that came under this key."""
    row = reader.row(
        f"SELECT {_COLUMNS} FROM fact_event WHERE collection_id = %(collection)s AND idempotency_key = %(key)s",
        {"collection": collection_id, "key": key},
    )
    return None if row is None else _event(row)


def find(reader: Reader, collection_id: int, event_id: int) -> StoredEvent | None:
    """The event of this id."""
    row = reader.row(
        f"SELECT {_COLUMNS} FROM fact_event WHERE collection_id = %(collection)s AND id = %(id)s",
        {"collection": collection_id, "id": event_id},
    )
    return None if row is None else _event(row)


def revoke(writer: Writer, collection_id: int, event_id: int) -> None:
    """Have an event count no more."""
    writer.execute(
        """
        UPDATE fact_event SET status = 'revoked', revoked_at = now()
        WHERE collection_id = %(collection)s AND id = %(id)s
        """,
        {"collection": collection_id, "id": event_id},
    )


def add_statements(writer: Writer, collection_id: int, event_id: int, said: Sequence[tuple[str, str]]) -> list[int]:
    """Keep sentences, as (source, text), that an assertion gave; their ids in the given order."""
    rows = writer.rows(
        """
        WITH numbered AS (
            SELECT nextval(pg_get_serial_sequence('fact_statement', 'id')) AS id, row.*
            FROM unnest(%(sources)s::text[], %(texts)s::text[]) WITH ORDINALITY AS row(source, text, n)
        ), inserted AS (
            INSERT INTO fact_statement (collection_id, id, event_id, source, text)
            SELECT %(collection)s, id, %(event)s, source, text FROM numbered
        )
        SELECT id FROM numbered ORDER BY n
        """,
        {
            "collection": collection_id,
            "event": event_id,
            "sources": [source for source, _ in said],
            "texts": [text for _, text in said],
        },
    )
    return [row.id for row in rows]


def statements_of(reader: Reader, collection_id: int, event_id: int) -> list[int]:
    """The sentences that an assertion gave."""
    rows = reader.rows(
        "SELECT id FROM fact_statement WHERE collection_id = %(collection)s AND event_id = %(event)s ORDER BY id",
        {"collection": collection_id, "event": event_id},
    )
    return [row.id for row in rows]


def remove_statements(writer: Writer, collection_id: int, event_id: int) -> None:
    """Forget the sentences that an assertion gave, and that they say anything."""
    writer.execute(
        "DELETE FROM fact_statement WHERE collection_id = %(collection)s AND event_id = %(event)s",
        {"collection": collection_id, "event": event_id},
    )


def merges(reader: Reader, collection_id: int, entities: Iterable[int]) -> list[StoredEvent]:
    """Events that count and have joined other entities to these, in their order."""
    rows = reader.rows(
        f"""
        SELECT {", ".join(f"e.{column}" for column in _COLUMNS.split(", "))} FROM {WANTED}
        {each("fact_event e", "e.entity_id = wanted.id")}
        WHERE e.kind = 'merge' AND e.status = 'applied' ORDER BY e.sequence
        """,
        {"collection": collection_id, "ids": list(entities)},
    )
    return [_event(row) for row in rows]


def stand_for(writer: Writer, collection_id: int, entities: Iterable[int], entity_id: int | None) -> list[int]:
    """Have facts by these entities' names be of one entity, or, if None, each of its own; the facts changed."""
    parameters = {"collection": collection_id, "ids": sorted(set(entities)), "entity": entity_id}
    writer.execute(
        f"""
        UPDATE fact_entity e SET stands_for = %(entity)s FROM {WANTED}
        WHERE e.collection_id = wanted.collection_id AND e.id = wanted.id
        """,
        parameters,
    )
    changed: set[int] = set()
    for said, meant in (("subject_said", "subject_id"), ("object_said", "object_id")):
        rows = writer.rows(
            f"""
            UPDATE fact f SET {meant} = coalesce(%(entity)s::bigint, f.{said}) FROM {WANTED}
            WHERE f.collection_id = wanted.collection_id AND f.{said} = wanted.id RETURNING f.id
            """,
            parameters,
        )
        changed.update(row.id for row in rows)
    return sorted(changed)


def _event(row: Any) -> StoredEvent:
    return StoredEvent(**row._mapping)
