"""Evidence for keys as a log: what to take out with a revoked event, and what a verification looks at."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engram.core.learning.judge_standing import FULL_WEIGHT
from engram.core.learning.logged_verdict import Expansion
from engram.storage.database import Reader, Writer
from engram.storage.feedback_log import logged_verdicts
from engram.storage.row_lookups import WANTED_IDS, alias_rows, id_rows, join_by_index
from engram.wings.published.storage.evolved_keys import EvolvedKey, Posting
from engram.wings.published.storage.key_credits import Credit


@dataclass(frozen=True, slots=True)
class WithdrawnEvidence:
    """Passages and units that revoked events had credited.

    Attributes:
        passages: whose scores the events had raised, in id order.
        units: that the events had brought or brought again, in id order.
        waited: whether a validated one of the events waited for an evolution.
    """

    passages: list[int]
    units: list[int]
    waited: bool


_OF_EVENTS = id_rows("events")
_CREDIT = join_by_index("key_credit credit", "credit.event_id = wanted.id")


def has_evidence(reader: Reader, collection_id: int, events: Sequence[int]) -> bool:
    """Whether one of the events carried expansions and is applied."""
    exists: bool = reader.scalar(
        f"""
        SELECT count(*) > 0 FROM {_OF_EVENTS}
        {join_by_index("key_evidence evidence", "evidence.event_id = wanted.id")}
        """,
        {"collection": collection_id, "events": list(events)},
    )
    return exists


def list_credited(reader: Reader, collection_id: int, events: Sequence[int]) -> list[int]:
    """Passages that the events credit or weighed and found wanting, in id order."""
    rows = reader.rows(
        f"SELECT DISTINCT credit.passage_id FROM {_OF_EVENTS} {_CREDIT} ORDER BY credit.passage_id",
        {"collection": collection_id, "events": list(events)},
    )
    return [row.passage_id for row in rows]


def withdraw(writer: Writer, collection_id: int, events: Sequence[int]) -> WithdrawnEvidence:
    """Remove the events' evidence and credits, and count them out of the evolutions that took them in."""
    parameters: dict[str, Any] = {"collection": collection_id, "events": list(events)}
    credits = writer.rows(
        f"""
        SELECT DISTINCT credit.passage_id, credit.unit_id, credit.weight > 0 AS counts FROM {_OF_EVENTS} {_CREDIT}
        """,
        parameters,
    )
    evidence = writer.rows(
        f"""
        DELETE FROM key_evidence evidence USING {_OF_EVENTS}
        WHERE evidence.collection_id = wanted.collection_id AND evidence.event_id = wanted.id
        RETURNING evidence.gate, evidence.generation
        """,
        parameters,
    )
    # By the list as well as by the join: by that alone Postgres 17 reads the generations of all collections.
    writer.execute(
        """
        UPDATE key_generation made SET events = made.events - taken.events
        FROM (
            SELECT number, count(*) AS events FROM unnest(%(numbers)s::bigint[]) AS number GROUP BY number
        ) AS taken
        WHERE made.collection_id = %(collection)s AND made.number = ANY(%(numbers)s::bigint[])
          AND made.number = taken.number
        """,
        parameters | {"numbers": [row.generation for row in evidence if row.generation is not None]},
    )
    return WithdrawnEvidence(
        passages=sorted({row.passage_id for row in credits if row.counts}),
        units=sorted({row.unit_id for row in credits}),
        waited=any(row.gate != "none" and row.generation is None for row in evidence),
    )


def bringers(
    reader: Reader, collection_id: int, units: Sequence[int]
) -> dict[int, tuple[bytes, Sequence[Expansion]]]:
    """Unit -> its text hash and the expansions of the first event that it was credited for.

    Units without any credit are left out.
    """
    rows = reader.rows(
        f"""
        SELECT DISTINCT ON (unit.id) unit.id, unit.text_hash, event.id AS event_id FROM {WANTED_IDS}
        {join_by_index("expansion_unit unit", "unit.id = wanted.id")}
        {join_by_index("key_credit credit", "credit.unit_id = unit.id")}
        {join_by_index("feedback_event event", "event.id = credit.event_id")}
        ORDER BY unit.id, event.applied_sequence
        """,
        {"collection": collection_id, "ids": list(units)},
    )
    brought = logged_verdicts.expansions(reader, collection_id, sorted({row.event_id for row in rows}))
    return {row.id: (bytes(row.text_hash), brought[row.event_id]) for row in rows}


def set_methods(writer: Writer, collection_id: int, methods: dict[int, str], removed: Sequence[int]) -> None:
    """Say by which method units came first, and remove the units ``removed``."""
    writer.execute(
        f"""
        UPDATE expansion_unit unit SET method = new.method
        FROM {alias_rows("unnest(%(ids)s::bigint[], %(methods)s::text[]) AS given(id, method)")}
        WHERE unit.collection_id = new.collection_id AND unit.id = new.id AND unit.method <> new.method
        """,
        {"collection": collection_id, "ids": list(methods), "methods": list(methods.values())},
    )
    writer.execute(
        f"""
        DELETE FROM expansion_unit unit USING {WANTED_IDS}
        WHERE unit.collection_id = wanted.collection_id AND unit.id = wanted.id
        """,
        {"collection": collection_id, "ids": list(removed)},
    )


def list_uncredited(reader: Reader, collection_id: int, limit: int) -> list[int]:
    """Applied events, not of new judges, whose expansions have no evidence yet, in id order."""
    rows = reader.rows(
        f"""
        SELECT event.id FROM feedback_event event
        WHERE event.collection_id = %(collection)s AND event.status = 'applied'
          AND event.standing >= {FULL_WEIGHT}
          AND EXISTS (
            SELECT FROM verdict_expansion brought
            WHERE brought.collection_id = %(collection)s AND brought.event_id = event.id
          )
          AND NOT EXISTS (
            SELECT FROM key_evidence evidence
            WHERE evidence.collection_id = %(collection)s AND evidence.event_id = event.id
          )
        ORDER BY event.id LIMIT %(limit)s
        """,
        {"collection": collection_id, "limit": limit},
    )
    return [row.id for row in rows]


def list_waiting_gains(reader: Reader, collection_id: int) -> list[float]:
    """The gains of validated events that no evolution took in yet, in the order in which they were applied."""
    rows = reader.rows(
        f"""
        SELECT evidence.gain FROM key_evidence evidence
        {join_by_index("feedback_event event", "event.id = evidence.event_id")}
        WHERE evidence.collection_id = %(collection)s AND evidence.generation IS NULL AND evidence.gate <> 'none'
        ORDER BY event.applied_sequence
        """,
        {"collection": collection_id},
    )
    return [row.gain for row in rows]


def list_keyed_passages(reader: Reader, collection_id: int, after: int, limit: int) -> list[int]:
    """The next passages, in id order, that verdicts left anything of in their keys."""
    parts = "\nUNION\n".join(
        f"""
        (SELECT DISTINCT held.passage_id AS id FROM {table} held
         {join_by_index("passage", "passage.id = held.passage_id")}
         WHERE held.collection_id = %(collection)s AND held.passage_id > %(after)s ORDER BY 1 LIMIT %(limit)s)
        """
        for table in ("key_credit", "expansion_memory", "passage_key", "evolved_posting")
    )
    rows = reader.rows(
        f"SELECT id FROM ({parts}) AS keyed ORDER BY id LIMIT %(limit)s",
        {"collection": collection_id, "after": after, "limit": limit},
    )
    return [row.id for row in rows]


def credits(reader: Reader, collection_id: int, passages: Sequence[int]) -> list[Credit]:
    """All credits of the passages, by passage, event and unit."""
    rows = reader.rows(
        f"""
        SELECT credit.event_id, credit.passage_id, credit.unit_id, credit.gain, credit.weight
        FROM {WANTED_IDS} {join_by_index("key_credit credit", "credit.passage_id = wanted.id")}
        ORDER BY credit.passage_id, credit.event_id, credit.unit_id
        """,
        {"collection": collection_id, "ids": list(passages)},
    )
    return [Credit(**row._asdict()) for row in rows]


def text_hashes(reader: Reader, collection_id: int, units: Sequence[int]) -> dict[int, bytes]:
    """Unit -> hash of its text."""
    rows = reader.rows(
        f"""
        SELECT unit.id, unit.text_hash FROM {WANTED_IDS}
        {join_by_index("expansion_unit unit", "unit.id = wanted.id")}
        """,
        {"collection": collection_id, "ids": list(units)},
    )
    return {row.id: bytes(row.text_hash) for row in rows}


def load_evolved_keys(reader: Reader, collection_id: int, passages: Sequence[int]) -> list[EvolvedKey]:
    """The passages' evolved keys as they stand, by passage; without their terms, which ``postings`` has."""
    rows = reader.rows(
        f"""
        SELECT key.passage_id, key.generation, key.vector, key.units, key.scores
        FROM {WANTED_IDS} {join_by_index("passage_key key", "key.passage_id = wanted.id")} ORDER BY key.passage_id
        """,
        {"collection": collection_id, "ids": list(passages)},
    )
    return [
        EvolvedKey(
            passage_id=row.passage_id,
            generation=row.generation,
            vector=row.vector.to_numpy(),
            units=row.units,
            scores=row.scores,
            increments={},
        )
        for row in rows
    ]


def postings(reader: Reader, collection_id: int, passages: Sequence[int]) -> list[Posting]:
    """The terms of the passages' evolved keys as they stand, by passage and term."""
    rows = reader.rows(
        f"""
        SELECT posting.term, posting.passage_id, posting.base, posting.frequency, posting.length
        FROM {WANTED_IDS} {join_by_index("evolved_posting posting", "posting.passage_id = wanted.id")}
        ORDER BY posting.passage_id, posting.term COLLATE "C"
        """,
        {"collection": collection_id, "ids": list(passages)},
    )
    return [Posting(**row._asdict()) for row in rows]
