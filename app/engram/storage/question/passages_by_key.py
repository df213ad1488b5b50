"""Passages by their keys: how near they are to the question, and what days they speak of."""

import json
from collections.abc import Collection as Collected
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.core.text.temporal import agreement
from engram.storage.column_parameters import decode_column, decode_vectors, integers, vectors
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.reader_sets import PASSAGES_OF_CALLER
from engram.storage.database import Reader
from engram.storage.half_vectors import halve
from engram.storage.question.graph_hops import DAYS
from engram.storage.question.metadata_filter import PassageCondition, compile_filter
from engram.storage.question.nearest_neighbours import build_index_condition, nearness
from engram.storage.question.query_focus import Focus, GraphLimits, Vector
from engram.storage.row_lookups import WANTED_IDS, join_by_index, join_once

SEARCHES_AT_ONCE = 100
"""Searches that one statement makes: an exact one of 10,000 passages takes some milliseconds."""
SAMPLED_PLACES, SAMPLED_THERE = 20, 20
"""Places in a collection from which on passages are compared with a condition, and how many at each."""


@dataclass(frozen=True, slots=True)
class KeyMatch:
    """Cosine of a passage's key with the question, and the passage's title."""

    similarity: float
    title: str | None


_IDS = "%(ids)s::bigint[]"
_SOUGHT = "%(key)s"
_HALVED = halve(_SOUGHT)
_KEY = join_by_index("passage_key key", "key.passage_id = p.id", outer=True)
_PASSAGE_OF_KEY = join_by_index("passage p", "p.id = key.passage_id {scope}")

# The evolved keys that are nearest: of all of them, unless the passages' metadata are asked for as well.
_NEAREST_EVOLVED = f"""
    SELECT p.id, key.similarity, p.title FROM (
        SELECT key.passage_id, -(key.vector <#> %(key)s) AS similarity FROM passage_key key
        WHERE key.collection_id = %(collection)s {{first}}
    ) AS key {_PASSAGE_OF_KEY}
"""

# NOT IN is answered from a hash table of ids, whatever the planner thinks of their number. Vectors are compared
# where they are read: to move them takes as long as all else takes.
_EXACT_EVOLVED = f"""
    SELECT p.id, -(p.embedding <#> {_HALVED}) AS similarity, p.title FROM {{source}} p
    WHERE p.collection_id = %(collection)s {{scope}}
      AND p.id NOT IN (SELECT passage_id FROM passage_key WHERE collection_id = %(collection)s)
    UNION ALL {{evolved}}
    ORDER BY similarity DESC LIMIT {{count}}
"""

# The few evolved keys exactly, the others by their index. A sub-select that finds no key, and not NOT EXISTS: that
# the planner would turn into a join, which keeps no order and so takes no vector index.
_INDEXED_EVOLVED = f"""
    WITH evolved AS ({{evolved}} ORDER BY similarity DESC LIMIT {{count}}), base AS (
        SELECT p.id, -(p.embedding <#> {_HALVED}) AS similarity, p.title FROM passage p
        WHERE {{rows}} {{scope}}
          AND (SELECT key.passage_id FROM passage_key key
               WHERE key.collection_id = %(collection)s AND key.passage_id = p.id) IS NULL
        ORDER BY {{order}} LIMIT {{count}}
    )
    SELECT * FROM base UNION ALL SELECT * FROM evolved ORDER BY similarity DESC LIMIT {{count}}
"""

_GIVEN = f"""
    SELECT p.id, {{similarity}} AS similarity, p.title
    FROM {join_once("passage p", "id", "{wanted}")} {{key}}
"""
# What is nearest, and those given besides, of a question whose statement has both.
_AND_GIVEN = f"""
    SELECT id, similarity, title FROM nearest UNION ALL {_GIVEN} WHERE p.id NOT IN (SELECT id FROM nearest)
"""
# A key is that of its passage as a search would have it.
_ALL = """
    SELECT array_send(array_agg(id)) AS ids, string_agg(vector_send(vector), ''::bytea) AS vectors,
           array_send(array_agg(coalesce(reader_set_id, 0))) AS reader_sets
    FROM (
        SELECT p.id, p.embedding::vector AS vector, p.reader_set_id FROM {passage} p
        WHERE p.collection_id = %(collection)s {evolved}
    ) AS keys
"""
_EVOLVED = """
          AND p.id NOT IN (SELECT passage_id FROM {key} WHERE collection_id = %(collection)s)
        UNION ALL
        SELECT key.passage_id, key.vector, p.reader_set_id FROM {key} key
        JOIN {passage} p ON p.collection_id = key.collection_id AND p.id = key.passage_id
        WHERE key.collection_id = %(collection)s
"""


def find_nearest_passages(
    reader: Reader,
    focus: Focus,
    limit: int,
    touched: Collected[int] = (),
    known: Sequence[int] | None = None,
) -> dict[int, KeyMatch]:
    """The ``limit`` passages whose keys are nearest to the question, best first, then those ``touched`` besides.

    A passage's key is its evolved one, if it has one that may be read, else its base key.

    Args:
        known: the nearest ones, if they are known already: they are not looked for again.
    """
    if known is not None:
        best = set(known)
        rows = reader.rows(_fill_template(_GIVEN, focus, _IDS), focus.parameters(ids=integers(best.union(touched))))
        ordered = sorted(rows, key=lambda row: (row.id not in best, -row.similarity))
        return {row.id: KeyMatch(row.similarity, row.title) for row in ordered}
    statement = build_nearest_query(focus)
    if touched:
        statement = f"WITH nearest AS MATERIALIZED ({statement}) {build_query_with_given(focus, _IDS)}"
    rows = reader.rows(statement, focus.parameters(limit=limit, ids=integers(touched)))
    return {row.id: KeyMatch(row.similarity, row.title) for row in rows}


def list_few_matching(
    reader: Reader, collection: Collection, condition: PassageCondition, most: int
) -> list[int] | None:
    """Passages that meet a condition, in id order; None if they are, or seem to be, more than ``most``.

    What they seem to be is estimated from ``SAMPLED_PLACES`` places, since to list many takes longer than a search.
    """
    values = {"collection": collection.id, "most": most + 1, **condition.values}
    share = reader.scalar(
        f"""
        SELECT avg(looked.meets::int)::float8 FROM (
            SELECT (SELECT id FROM passage WHERE collection_id = %(collection)s ORDER BY id LIMIT 1) AS first,
                   (SELECT id FROM passage WHERE collection_id = %(collection)s ORDER BY id DESC LIMIT 1) AS last
        ) AS held CROSS JOIN generate_series(0, {SAMPLED_PLACES - 1}) AS place CROSS JOIN LATERAL (
            SELECT ({condition.sql}) AS meets FROM passage p WHERE p.collection_id = %(collection)s
              AND p.id >= held.first + (held.last - held.first) * place / {SAMPLED_PLACES}
            ORDER BY p.id LIMIT {SAMPLED_THERE}
        ) AS looked
        """,
        values,
    )
    if (share or 0.0) * collection.passage_count > 2 * most:
        return None
    own = "p.collection_id = %(collection)s"
    if condition.indexed:
        own = build_index_condition(collection.id, "p.")
    ids = reader.scalar(
        f"""
        SELECT array_send(array_agg(id ORDER BY id)) FROM (
            SELECT p.id FROM passage p WHERE {own} AND ({condition.sql}) LIMIT %(most)s
        ) AS few
        """,
        values,
    )
    few: list[int] = decode_column(ids, np.int64).tolist()
    return few if len(few) <= most else None


def build_nearest_query(focus: Focus, count: str = "%(limit)s") -> str:
    """The statement of the ``count`` passages whose keys are nearest, best first: id, similarity and title."""
    scope = f"AND {focus.passage_condition}" if focus.is_narrowed else ""
    # An index may pass over all that are given.
    exact = focus.limits.exact or focus.by_readers or focus.among is not None
    source = PASSAGES_OF_CALLER if focus.by_readers else "passage"
    near = nearness(focus.collection, "passage", "embedding", _SOUGHT, exact=exact, alias="p.")
    if not focus.evolved:
        return f"""
            SELECT id, -distance AS similarity, title FROM (
                SELECT p.id, {near.distance} AS distance, p.title FROM {source} p
                WHERE {near.rows} {scope} ORDER BY {near.order} LIMIT {count}
            ) AS nearest ORDER BY distance
        """
    first = "" if scope else f"ORDER BY similarity DESC LIMIT {count}"
    evolved = _NEAREST_EVOLVED.format(scope=scope, first=first)
    if exact or "passage" not in focus.collection.indexed:
        return _EXACT_EVOLVED.format(source=source, scope=scope, evolved=evolved, count=count)
    return _INDEXED_EVOLVED.format(scope=scope, evolved=evolved, rows=near.rows, order=near.order, count=count)


def build_query_with_given(focus: Focus, condition: str) -> str:
    """Return SQL for the nearest rows of a statement and the rows with ids in the array ``condition``."""
    return _fill_template(_AND_GIVEN, focus, condition)


def _fill_template(template: str, focus: Focus, condition: str) -> str:
    return template.format(
        wanted=condition,
        similarity=build_key_similarity(focus, _SOUGHT),
        key=build_key_join(focus),
    )


def build_key_join(focus: Focus) -> str:
    """Return SQL that joins ``key``, the evolved keys of passages ``p``, if these may be read."""
    return _KEY if focus.evolved else ""


def build_key_similarity(focus: Focus, sought: str) -> str:
    """Return SQL for the inner product of passage ``p``'s key and a vector; evolved keys are in ``key``."""
    base = f"-(p.embedding <#> {halve(sought)})"
    return f"coalesce(-(key.vector <#> {sought}), {base})" if focus.evolved else base


@dataclass(frozen=True, slots=True)
class PassageKeys:
    """Keys of all passages of a collection, whoever may read them.

    Attributes:
        ids: (n,).
        keys: (n, d): evolved ones where passages have them, or base keys.
        reader_sets: of each passage, 0 where everyone may read it, (n,).
    """

    ids: NDArray[np.int64]
    keys: NDArray[np.float32]
    reader_sets: NDArray[np.int64]

    def list_visible(self, reader: Reader) -> NDArray[np.bool_] | None:
        """Tell which passages the caller sees, (n,); None: all."""
        if reader.reader_sets is None:
            return None
        return np.isin(self.reader_sets, [0, *reader.reader_sets])


def load_all_keys(reader: Reader, collection_id: int, *, evolved: bool) -> PassageKeys:
    """Load the keys of all passages of a collection, also of those that the caller does not see."""
    tables = {"passage": "passage", "key": "passage_key"}
    if reader.reader_sets is not None:
        tables = {"passage": "passage_embedding", "key": "passage_key_vector"}
    statement = _ALL.format(evolved=_EVOLVED if evolved else "", passage="{passage}").format(**tables)
    row = reader.row(statement, {"collection": collection_id})
    return PassageKeys(
        decode_column(row.ids, np.int64), decode_vectors(row.vectors), decode_column(row.reader_sets, np.int64)
    )


@dataclass(frozen=True, slots=True)
class KeySearch:
    """One of many searches: the ``depth`` >= 1 passages nearest to ``vector``, (d,).

    ``filter``: only passages that it lets through, see ``core.text.filters``; None for all.
    """

    vector: Vector
    depth: int
    filter: Mapping[str, Any] | None = None


def find_nearest_to_each(
    reader: Reader, collection: Collection, searches: Sequence[KeySearch], limits: GraphLimits
) -> list[list[int]]:
    """Return the nearest passages of each search by base keys, in a statement for each filter.

    Raises:
        ValueError: a filter is none, see ``core.text.filters``.
    """
    nearest_ids: list[list[int]] = [[] for _ in searches]
    places_by_filter: dict[str, list[int]] = {}
    for place, search in enumerate(searches):
        places_by_filter.setdefault(json.dumps(search.filter or None, sort_keys=True), []).append(place)
    for places in places_by_filter.values():
        condition = compile_filter(searches[places[0]].filter)
        for start in range(0, len(places), SEARCHES_AT_ONCE):
            some = places[start : start + SEARCHES_AT_ONCE]
            for row in _search_nearest_to_each(
                reader, collection, [searches[place] for place in some], limits, condition
            ):
                nearest_ids[some[row.n - 1]].append(row.id)
    return nearest_ids


def _search_nearest_to_each(
    reader: Reader,
    collection: Collection,
    searches: Sequence[KeySearch],
    limits: GraphLimits,
    condition: PassageCondition | None,
) -> Sequence[Any]:
    near = nearness(collection, "passage", "embedding", "asked.vector", exact=limits.exact, alias="p.")
    return reader.rows(
        f"""
        SELECT asked.n, nearest.id
        FROM unnest(%(vectors)s::vector[], %(depths)s::bigint[]) WITH ORDINALITY AS asked(vector, depth, n)
        CROSS JOIN LATERAL (
            SELECT p.id, {near.distance} AS distance FROM passage p
            WHERE {near.rows} {"" if condition is None else f"AND ({condition.sql})"}
            ORDER BY {near.order} LIMIT asked.depth
        ) AS nearest
        ORDER BY asked.n, nearest.distance, nearest.id
        """,
        {
            "collection": collection.id,
            "vectors": vectors([search.vector for search in searches]),
            "depths": integers(search.depth for search in searches),
            **({} if condition is None else condition.values),
        },
    )


def find_timely_passages(reader: Reader, focus: Focus, passages: Sequence[int]) -> dict[int, float]:
    """Return the passages with dated sentences, and how well their days match the question's, in [0, 1].

    A passage is as timely as its best sentence. Nothing is read for a question that names no time.
    """
    if not focus.intervals or not passages:
        return {}
    rows = reader.rows(
        f"""
        SELECT DISTINCT s.passage_id, {DAYS}
        FROM {WANTED_IDS} {join_by_index("sentence s", "s.passage_id = wanted.id")}
        {join_by_index("time_expression t", "t.id = s.time_expression_id")}
        """,
        {"collection": focus.collection.id, "ids": list(passages)},
    )
    days = np.array([(row.starts, row.ends) for row in rows], dtype=np.float64).reshape(-1, 2)
    timely: dict[int, float] = {}
    for row, share in zip(rows, agreement(focus.intervals, days[:, 0], days[:, 1]).tolist(), strict=True):
        timely[row.passage_id] = max(timely.get(row.passage_id, 0.0), share)
    return timely
