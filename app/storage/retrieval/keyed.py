"""Passages by their keys: how near they are to the question, and what days they speak of."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from app.core.temporal import agreement
from app.storage.database import Reader
from app.storage.lookups import WANTED, each
from app.storage.retrieval.focus import Focus, GraphLimits
from app.storage.retrieval.hops import DAYS
from app.storage.retrieval.nearness import nearness


@dataclass(frozen=True, slots=True)
class Keyed:
    """How near a passage's key is to the question (cosine), and its title."""

    similarity: float
    title: str | None


_KEY = each("passage_key key", "key.passage_id = p.id", outer=True)
_PASSAGE_OF_KEY = each("passage p", "p.id = key.passage_id {scope}")

# NOT IN is answered from a hash table of ids, whatever the planner thinks of their number. Vectors are compared
# where they are read: to move them takes as long as all else takes.
_EXACT_EVOLVED = f"""
    SELECT p.id, -(p.embedding <#> %(key)s) AS similarity, p.title FROM passage p
    WHERE p.collection_id = %(collection)s {{scope}}
      AND p.id NOT IN (SELECT passage_id FROM passage_key WHERE collection_id = %(collection)s)
    UNION ALL
    SELECT p.id, -(key.vector <#> %(key)s), p.title FROM passage_key key {_PASSAGE_OF_KEY}
    WHERE key.collection_id = %(collection)s
    ORDER BY similarity DESC LIMIT %(limit)s
"""

# The few evolved keys exactly, the others by their index. A sub-select that finds no key, and not NOT EXISTS: that
# the planner would turn into a join, which keeps no order and so takes no vector index.
_INDEXED_EVOLVED = f"""
    WITH evolved AS (
        SELECT p.id, -(key.vector <#> %(key)s) AS similarity, p.title FROM passage_key key {_PASSAGE_OF_KEY}
        WHERE key.collection_id = %(collection)s ORDER BY similarity DESC LIMIT %(limit)s
    ), base AS (
        SELECT p.id, -(p.embedding <#> %(key)s) AS similarity, p.title FROM passage p
        WHERE p.collection_id = {{collection}} {{scope}}
          AND (SELECT key.passage_id FROM passage_key key
               WHERE key.collection_id = %(collection)s AND key.passage_id = p.id) IS NULL
        ORDER BY {{order}} LIMIT %(limit)s
    )
    SELECT * FROM base UNION ALL SELECT * FROM evolved ORDER BY similarity DESC LIMIT %(limit)s
"""

_AND_GIVEN = f"""
    WITH nearest AS MATERIALIZED ({{nearest}})
    SELECT id, similarity, title FROM nearest
    UNION ALL
    SELECT p.id, -({{vector}} <#> %(key)s), p.title
    FROM {WANTED} {each("passage p", "p.id = wanted.id")} {{key}}
    WHERE wanted.id NOT IN (SELECT id FROM nearest)
"""


def nearest_passages(
    reader: Reader, focus: Focus, limit: int, limits: GraphLimits, given: Collection[int] = ()
) -> dict[int, Keyed]:
    """The ``limit`` passages whose keys are nearest to the question, best first, then those ``given`` besides.

    A passage's key is its evolved one, if it has one that may be read, else its base key.
    """
    scope = "AND p.metadata @> %(metadata)s" if focus.metadata else ""
    near = nearness(focus.collection, "passage", "embedding", "key", exact=limits.exact, alias="p.")
    if not focus.evolved:
        statement = f"""
            SELECT * FROM (
                SELECT p.id, -(p.embedding <#> %(key)s) AS similarity, p.title FROM passage p
                WHERE p.collection_id = {near.collection} {scope} ORDER BY {near.order} LIMIT %(limit)s
            ) AS nearest ORDER BY similarity DESC
        """
    elif limits.exact or "passage" not in focus.collection.indexed:
        statement = _EXACT_EVOLVED.format(scope=scope)
    else:
        statement = _INDEXED_EVOLVED.format(scope=scope, collection=near.collection, order=near.order)
    if given:
        statement = _AND_GIVEN.format(
            nearest=statement,
            vector="coalesce(key.vector, p.embedding)" if focus.evolved else "p.embedding",
            key=_KEY if focus.evolved else "",
        )
    rows = reader.rows(statement, focus.parameters(limit=limit, ids=list(given)))
    return {row.id: Keyed(row.similarity, row.title) for row in rows}


def timely_passages(reader: Reader, focus: Focus, passages: Sequence[int]) -> dict[int, float]:
    """Of the given passages, those with a dated sentence: how well its days agree with those asked for, in [0, 1].

    A passage is as timely as its best sentence. Nothing is read for a question that names no time.
    """
    if not focus.asked or not passages:
        return {}
    rows = reader.rows(
        f"""
        SELECT DISTINCT s.passage_id, {DAYS}
        FROM {WANTED} {each("sentence s", "s.passage_id = wanted.id")}
        {each("time_expression t", "t.id = s.time_expression_id")}
        """,
        {"collection": focus.collection.id, "ids": list(passages)},
    )
    days = np.array([(row.starts, row.ends) for row in rows], dtype=np.float64).reshape(-1, 2)
    timely: dict[int, float] = {}
    for row, share in zip(rows, agreement(focus.asked, days[:, 0], days[:, 1]).tolist(), strict=True):
        timely[row.passage_id] = max(timely.get(row.passage_id, 0.0), share)
    return timely
