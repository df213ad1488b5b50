"""Counts of passages by the values of a metadata field."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engram.storage.database import Reader
from engram.storage.question.metadata_filter import compile_filter


@dataclass(frozen=True, slots=True)
class PassageGroup:
    """Passages that have the same value of a field; a passage with a list is in the group of each element."""

    value: Any
    passages: int


@dataclass(frozen=True, slots=True)
class PassageCounts:
    """Count of passages, and their groups, the largest first.

    Attributes:
        without: passages that lack the field, or have null or an empty list there.
        more: whether there are further groups.
    """

    passages: int
    groups: list[PassageGroup]
    without: int
    more: bool


def count(
    reader: Reader, collection_id: int, filter_: Mapping[str, Any] | None, by: str | None, limit: int
) -> PassageCounts:
    """Count the passages that the caller sees and the filter lets through, by the values of field ``by``.

    Args:
        by: a field of the metadata's top level; None: no groups.
        limit: groups at most.
    """
    condition = compile_filter(filter_)
    matching = "p.collection_id = %(collection)s" + ("" if condition is None else f" AND ({condition.sql})")
    parameters = {"collection": collection_id, **({} if condition is None else condition.values)}
    if by is None:
        counted: int = reader.scalar(f"SELECT count(*) FROM passage p WHERE {matching}", parameters)
        return PassageCounts(counted, [], 0, more=False)
    rows = reader.rows(
        f"""
        WITH matching AS MATERIALIZED (SELECT p.metadata -> %(by)s AS held FROM passage p WHERE {matching})
        SELECT one.value, count(*) AS passages, (SELECT count(*) FROM matching) AS total
        FROM matching LEFT JOIN LATERAL (
            SELECT DISTINCT element.value FROM jsonb_array_elements(
                CASE jsonb_typeof(held) WHEN 'array' THEN held ELSE jsonb_build_array(held) END
            ) AS element(value)
            WHERE element.value <> 'null'
        ) AS one ON true
        GROUP BY one.value ORDER BY one.value IS NULL DESC, passages DESC, one.value LIMIT %(limit)s
        """,
        parameters | {"by": by, "limit": limit + 2},
    )
    without = sum(row.passages for row in rows if row.value is None)
    groups = [PassageGroup(row.value, row.passages) for row in rows if row.value is not None]
    return PassageCounts(rows[0].total if rows else 0, groups[:limit], without, more=len(groups) > limit)
