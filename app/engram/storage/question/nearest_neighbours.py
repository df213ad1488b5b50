"""Searching a collection by nearness: through its vector index where it has one, else exactly."""

from dataclasses import dataclass

from engram.storage.corpus.collections import Collection
from engram.storage.half_vectors import halve

MOST_NUMBERS = 2_000
"""Longest vectors that an HNSW index takes as they are."""
IN_HALVES = frozenset({"entity", "passage"})
"""Searched tables whose vectors are in half precision."""
MOST_HALVES = 4_000
"""Longest vectors that an HNSW index takes in half precision; of longer ones it has so many numbers."""


@dataclass(frozen=True, slots=True)
class Nearness:
    """Parts of a statement that takes what is nearest first.

    Attributes:
        rows: the condition on what is searched.
        order: what to order by; through an index of long vectors, distances in half precision.
        distance: the distance in the precision of the column. The same text as ``order`` where that is one.
    """

    rows: str
    order: str
    distance: str


def build_index_condition(collection_id: int, alias: str = "") -> str:
    """The condition on rows in a collection's vector index, which is that of the index as well.

    No other index can serve it. Of a collection that statistics do not know of, the planner takes it that it is
    empty, and would find and sort all of its rows by another index.
    """
    return f"({alias}collection_id + 0) = {int(collection_id)}"


def nearness(
    collection: Collection, table: str, column: str, vector: str, *, exact: bool = False, alias: str = ""
) -> Nearness:
    """Return how to order rows of ``table`` by nearness of ``column`` to ``vector``, a parameter or a column.

    Args:
        exact: search exactly also where there is an index.
        alias: of the table in the statement.
    """
    sought = halve(vector) if table in IN_HALVES else vector
    distance = f"{alias}{column} <#> {sought}"
    if exact or table not in collection.indexed:
        order = f"({distance}) + 0"  # which no index can serve
        return Nearness(f"{alias}collection_id = %(collection)s", order, order)
    rows = build_index_condition(collection.id, alias) + _breadth(collection, table)
    dimension = collection.encoder_dimension
    key = build_index_key(table, alias + column, dimension)
    if dimension > MOST_NUMBERS:
        return Nearness(rows, f"{key} <#> {build_index_key(table, vector, dimension)}", distance)
    order = f"{key} <#> {sought}"
    return Nearness(rows, order, order)


def build_index_key(table: str, vector: str, dimension: int) -> str:
    """A vector as an index of ``table`` has it, in parentheses: an index needs a dimension, a column has none."""
    size = int(dimension)
    if size > MOST_HALVES:
        return f"(subvector({vector}::halfvec, 1, {MOST_HALVES})::halfvec({MOST_HALVES}))"
    if size > MOST_NUMBERS or table in IN_HALVES:
        return f"({vector}::halfvec({size}))"
    return f"({vector}::vector({size}))"


def operators(table: str, dimension: int) -> str:
    """The operator class of an index of such vectors of ``table``."""
    return "halfvec_ip_ops" if dimension > MOST_NUMBERS or table in IN_HALVES else "vector_ip_ops"


def _breadth(collection: Collection, table: str) -> str:
    """A condition that always holds, and has the index searched as broadly as it takes to find enough.

    It is seen to once, before the index is opened, and goes wherever the statement goes: to a replica, to a node.
    """
    measured = collection.index_recall.get(table)
    if measured is None or measured.breadth <= measured.configured:
        return ""
    breadth = f"greatest({int(measured.breadth)}, current_setting('hnsw.ef_search')::int)::text"
    return f" AND (SELECT set_config('hnsw.ef_search', {breadth}, true)) IS NOT NULL"
