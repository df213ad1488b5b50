"""Searching a collection by nearness: through its vector index where it has one, else exactly."""

from dataclasses import dataclass

from app.storage.corpus.collections import Collection


@dataclass(frozen=True, slots=True)
class Nearness:
    """Parts of a statement that takes what is nearest first.

    Attributes:
        collection: what ``collection_id`` must equal: a vector index holds one collection's rows, and the planner
            takes it only if the statement itself names that collection.
        order: what to order by.
    """

    collection: str
    order: str


def nearness(
    collection: Collection, table: str, column: str, vector: str, *, exact: bool = False, alias: str = ""
) -> Nearness:
    """How to order rows of ``table`` by ``column``'s nearness to ``vector``, a parameter or a column.

    Args:
        exact: search exactly also where there is an index.
        alias: of the table in the statement.
    """
    distance = f"{alias}{column} <#> {vector}"
    if exact or table not in collection.indexed:
        return Nearness("%(collection)s", f"({distance}) + 0")  # which no index can serve
    return Nearness(str(int(collection.id)), distance)
