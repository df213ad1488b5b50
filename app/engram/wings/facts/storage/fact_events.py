"""The log of what callers said of facts: assertions with their sentences, revisions, and entities that joined."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from engram.storage.database import Reader, Writer
from engram.storage.erasure.erased_log import Selection
from engram.storage.row_lookups import WANTED_IDS, join_by_index
from engram.storage.tables.table_base import NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFactEvent:
    """An event to append; see ``storage.tables.facts``."""

    graph_id: int
    kind: str
    judge: str
    principal: str
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
    part_of: int | None = None
    origin_id: int | None = None
    covers: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class StoredFactEvent:
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
    covers: Sequence[int] | None
    status: str
    sequence: int
    received_at: datetime
    revoked_at: datetime | None


_COLUMNS = (
    "id, graph_id, kind, judge, idempotency_key, body_hash, fact_id, other_id, entity_id, valid_until, reason, "
    "covers, status, sequence, received_at, revoked_at"
)


def append(writer: Writer, collection_id: int, event: NewFactEvent) -> StoredFactEvent:
    """Append an event; called under the lock, by which no other has its key meanwhile."""
    row = writer.row(
        f"""
        INSERT INTO fact_event (collection_id, graph_id, kind, judge, principal, idempotency_key, body_hash,
            fact_id, other_id, entity_id, valid_until, reason, part_of, origin_id, covers, sequence,
            observation_noise_positive, observation_noise_negative, process_noise, daily_share, contested_share,
            standing)
        VALUES (%(collection)s, %(graph_id)s, %(kind)s, %(judge)s, %(principal)s, %(idempotency_key)s,
            %(body_hash)s, %(fact_id)s, %(other_id)s, %(entity_id)s, %(valid_until)s, %(reason)s, %(part_of)s,
            %(origin_id)s, %(covers)s, nextval('fact_said'), %(positive)s, %(negative)s, %(process_noise)s,
            %(share)s, %(contested_share)s, %(standing)s)
        RETURNING {_COLUMNS}
        """,
        asdict(event)
        | {"collection": collection_id, "covers": None if event.covers is None else list(event.covers)},
    )
    return _event(row)


def find_by_key(reader: Reader, collection_id: int, principal: str, key: str) -> StoredFactEvent | None:
    """The event that came under this key of the principal."""
    row = reader.row(
        f"""
        SELECT {_COLUMNS} FROM fact_event
        WHERE collection_id = %(collection)s AND principal = %(principal)s AND idempotency_key = %(key)s
        """,
        {"collection": collection_id, "principal": principal, "key": key},
    )
    return None if row is None else _event(row)


def find(reader: Reader, collection_id: int, event_id: int) -> StoredFactEvent | None:
    """The event of this id."""
    row = reader.row(
        f"SELECT {_COLUMNS} FROM fact_event WHERE collection_id = %(collection)s AND id = %(id)s",
        {"collection": collection_id, "id": event_id},
    )
    return None if row is None else _event(row)


def find_many(reader: Reader, collection_id: int, event_ids: Iterable[int]) -> list[StoredFactEvent]:
    """These events, in their order."""
    columns = ", ".join(f"e.{column.strip()}" for column in _COLUMNS.split(","))
    rows = reader.rows(
        f"""
        SELECT {columns} FROM {WANTED_IDS} {join_by_index("fact_event e", "e.id = wanted.id")} ORDER BY e.sequence
        """,
        {"collection": collection_id, "ids": sorted(set(event_ids))},
    )
    return [_event(row) for row in rows]


def revoke(writer: Writer, collection_id: int, event_ids: Iterable[int]) -> None:
    """Have events count no more; those that do not already stay as they are."""
    writer.execute(
        f"""
        UPDATE fact_event e SET status = 'revoked', revoked_at = now() FROM {WANTED_IDS}
        WHERE e.collection_id = wanted.collection_id AND e.id = wanted.id AND e.status = 'applied'
        """,
        {"collection": collection_id, "ids": sorted(set(event_ids))},
    )


def add_statements(
    writer: Writer,
    collection_id: int,
    event_id: int,
    statements: Sequence[tuple[str, str]],
    origins: Sequence[int] | None = None,
) -> list[int]:
    """Keep sentences, as (source, text), that an event gave; their ids in the given order.

    Args:
        origins: the sentences of another graph that they repeat.
    """
    rows = writer.rows(
        """
        WITH numbered AS (
            SELECT nextval(pg_get_serial_sequence('fact_statement', 'id')) AS id, row.*
            FROM unnest(%(sources)s::text[], %(texts)s::text[], %(origins)s::bigint[])
                WITH ORDINALITY AS row(source, text, origin, n)
        ), inserted AS (
            INSERT INTO fact_statement (collection_id, id, event_id, source, text, origin_id)
            SELECT %(collection)s, id, %(event)s, source, text, origin FROM numbered
        )
        SELECT id FROM numbered ORDER BY n
        """,
        {
            "collection": collection_id,
            "event": event_id,
            "sources": [source for source, _ in statements],
            "texts": [text for _, text in statements],
            "origins": [None] * len(statements) if origins is None else list(origins),
        },
    )
    return [row.id for row in rows]


def list_statements_of_event(reader: Reader, collection_id: int, event_id: int) -> list[int]:
    """The sentences that an event gave."""
    rows = reader.rows(
        "SELECT id FROM fact_statement WHERE collection_id = %(collection)s AND event_id = %(event)s ORDER BY id",
        {"collection": collection_id, "event": event_id},
    )
    return [row.id for row in rows]


def list_statements(reader: Reader, collection_id: int, event_ids: Iterable[int]) -> list[int]:
    """The sentences that these events gave, and those that repeat them in other graphs."""
    rows = reader.rows(
        f"""
        WITH own AS MATERIALIZED (
            SELECT s.id FROM {WANTED_IDS} {join_by_index("fact_statement s", "s.event_id = wanted.id")}
        )
        SELECT id FROM own UNION SELECT s.id FROM own
        {join_by_index("fact_statement s", "s.origin_id = own.id")} ORDER BY id
        """,
        {"collection": collection_id, "ids": sorted(set(event_ids))},
    )
    return [row.id for row in rows]


def remove_statements(writer: Writer, collection_id: int, statements: Iterable[int]) -> None:
    """Forget sentences that were stated, and that they say anything."""
    writer.execute(
        f"""
        DELETE FROM fact_statement s USING {WANTED_IDS}
        WHERE s.collection_id = wanted.collection_id AND s.id = wanted.id
        """,
        {"collection": collection_id, "ids": sorted(set(statements))},
    )


def _event(row: Any) -> StoredFactEvent:
    return StoredFactEvent(**row._asdict())


def rename_person(writer: Writer, collection_id: int, selection: Selection, random_name: str) -> int:
    """Give what an erased judge or principal said of facts to a random judge, without reasons; how many events."""
    if selection.name is None:
        return 0
    named = "judge = %(name)s" if selection.kind == "judge" else "(judge = %(name)s OR principal = %(name)s)"
    return writer.execute(
        f"""
        UPDATE fact_event SET judge = CASE WHEN judge = %(name)s THEN %(random)s ELSE judge END,
            principal = %(nobody)s, idempotency_key = %(random)s || '-' || id::text, reason = NULL
        WHERE collection_id = %(collection)s AND {named}
        """,
        selection.parameters(collection_id) | {"random": random_name, "nobody": NOBODY},
    )
