"""Generations of evolved keys: what each evolution took in, and which one serves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import join_by_index


@dataclass(frozen=True, slots=True)
class Generation:
    """One evolution; ``active`` is false once it is rolled back."""

    number: int
    parent: int
    active: bool
    reason: str
    rules: dict[str, Any]
    events: int
    passages: int
    created_at: datetime


LEARNED = ("key_evolution", "key_generation", "expansion_memory", "expansion_unit")
"""Tables of what verdicts taught of keys, in the order of their locks; evidence and credits go with verdicts."""
_SELECT = """
    SELECT number, parent, active, reason, rules, events, passages, created_at FROM key_generation
    WHERE collection_id = %(collection)s
"""


def get_serving_number(reader: Reader, collection_id: int) -> int:
    """The generation whose keys are searched; 0 for base keys, as after all generations were cleared."""
    number: int | None = reader.scalar(
        """
        SELECT number FROM key_generation WHERE collection_id = %(collection)s
            AND number = (SELECT key_generation FROM collection WHERE id = %(collection)s)
        """,
        {"collection": collection_id},
    )
    return number or 0


def find(reader: Reader, collection_id: int, number: int) -> Generation | None:
    """The generation, or None."""
    row = reader.row(f"{_SELECT} AND number = %(number)s", {"collection": collection_id, "number": number})
    return None if row is None else Generation(**row._asdict())


def page(reader: Reader, collection_id: int, before: int | None, limit: int) -> list[Generation]:
    """Generations before number ``before``, the latest first."""
    rows = reader.rows(
        f"{_SELECT} AND (%(before)s::bigint IS NULL OR number < %(before)s) ORDER BY number DESC LIMIT %(limit)s",
        {"collection": collection_id, "before": before, "limit": limit},
    )
    return [Generation(**row._asdict()) for row in rows]


def open_next(
    writer: Writer, collection_id: int, reason: str, rules: Mapping[str, Any], passages: int
) -> Generation:
    """A new generation that takes in all evidence that waits, and serves from now on."""
    parameters = {
        "collection": collection_id,
        "reason": reason,
        "rules": Jsonb(dict(rules)),
        "passages": passages,
        "parent": get_serving_number(writer, collection_id),
    }
    number = writer.scalar(
        """
        INSERT INTO key_generation (collection_id, number, parent, active, reason, rules, events, passages)
        SELECT %(collection)s, 1 + coalesce(max(number), 0), %(parent)s, true, %(reason)s, %(rules)s, 0,
               %(passages)s
        FROM key_generation WHERE collection_id = %(collection)s
        RETURNING number
        """,
        parameters,
    )
    inserted = writer.execute(
        """
        UPDATE key_evidence SET generation = %(number)s
        WHERE collection_id = %(collection)s AND generation IS NULL AND gate <> 'none'
        """,
        parameters | {"number": number},
    )
    writer.execute(
        "UPDATE key_generation SET events = %(taken)s WHERE collection_id = %(collection)s AND number = %(number)s",
        parameters | {"number": number, "taken": inserted},
    )
    _serve(writer, collection_id, number)
    opened = find(writer, collection_id, number)
    if opened is None:
        raise RuntimeError("a row that was just written is not there")
    return opened


def go_to(writer: Writer, collection_id: int, number: int) -> list[int]:
    """Serve generation ``number``: it and what it went on from count, all others do not.

    Returns:
        Passages whose evidence that is taken in changed by that, in id order.
    """
    changed = writer.rows(
        """
        WITH RECURSIVE lineage AS (
            SELECT number, parent FROM key_generation
            WHERE collection_id = %(collection)s AND number = %(number)s
            UNION ALL
            SELECT g.number, g.parent FROM key_generation g JOIN lineage ON g.number = lineage.parent
            WHERE g.collection_id = %(collection)s
        )
        UPDATE key_generation g SET active = NOT g.active
        WHERE g.collection_id = %(collection)s AND g.active <> (g.number IN (SELECT number FROM lineage))
        RETURNING g.number
        """,
        {"collection": collection_id, "number": number},
    )
    _serve(writer, collection_id, number)
    return list_touched_passages(writer, collection_id, [row.number for row in changed])


def list_touched_passages(reader: Reader, collection_id: int, numbers: Sequence[int]) -> list[int]:
    """Passages for which these generations took evidence in, in id order."""
    rows = reader.rows(
        f"""
        SELECT DISTINCT credit.passage_id FROM key_evidence evidence
        {join_by_index("key_credit credit", "credit.event_id = evidence.event_id")}
        {join_by_index("passage", "passage.id = credit.passage_id")}
        WHERE evidence.collection_id = %(collection)s AND evidence.generation = ANY(%(numbers)s)
          AND credit.weight > 0
        ORDER BY credit.passage_id
        """,
        {"collection": collection_id, "numbers": list(numbers)},
    )
    return [row.passage_id for row in rows]


def _serve(writer: Writer, collection_id: int, number: int) -> None:
    writer.execute(
        "UPDATE collection SET key_generation = %(number)s WHERE id = %(collection)s",
        {"collection": collection_id, "number": number},
    )


def delete_all(writer: Writer, collection_id: int) -> dict[str, int]:
    """Remove generations and units, after verdicts and evolved keys are removed; table -> rows."""
    return {
        table: writer.execute(
            f"DELETE FROM {table} WHERE collection_id = %(collection)s", {"collection": collection_id}
        )
        for table in LEARNED
    }
