"""LlamaIndex's metadata filters as Engram's."""

from collections.abc import Mapping
from typing import Any

from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

OPERATORS = {
    FilterOperator.EQ: "$eq",
    FilterOperator.NE: "$ne",
    FilterOperator.GT: "$gt",
    FilterOperator.GTE: "$gte",
    FilterOperator.LT: "$lt",
    FilterOperator.LTE: "$lte",
    FilterOperator.IN: "$in",
    FilterOperator.NIN: "$nin",
    FilterOperator.ANY: "$in",
    FilterOperator.CONTAINS: "$eq",
    FilterOperator.TEXT_MATCH: "$contains",
}
"""Of a field that is a list, Engram compares each element."""


def to_engram(filters: MetadataFilters | Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Translate filters of LlamaIndex's; one of Engram's own is returned as it is.

    Raises:
        ValueError: Engram has no such operator.
    """
    if not isinstance(filters, MetadataFilters):
        return None if filters is None else dict(filters)
    parts = [
        to_engram(one) or {} if isinstance(one, MetadataFilters) else _comparison(one) for one in filters.filters
    ]
    if not parts:
        return None
    if filters.condition == FilterCondition.NOT:
        return {"$not": {"$or": parts}}
    return {"$or" if filters.condition == FilterCondition.OR else "$and": parts}


def _comparison(one: MetadataFilter) -> dict[str, Any]:
    if one.operator == FilterOperator.IS_EMPTY:
        return {one.key: {"$present": False}}
    if one.operator == FilterOperator.ALL:
        return {"$and": [{one.key: {"$eq": value}} for value in one.value or ()]}  # type: ignore[union-attr]
    if one.operator not in OPERATORS:
        raise ValueError(f"Engram has no operator {one.operator.value!r}")
    return {one.key: {OPERATORS[one.operator]: one.value}}
