"""Haystack's filters as Engram's."""

from collections.abc import Mapping
from typing import Any

JOINS = {"AND": "$and", "OR": "$or"}
COMPARISONS = {
    "==": "$eq",
    "!=": "$ne",
    ">": "$gt",
    ">=": "$gte",
    "<": "$lt",
    "<=": "$lte",
    "in": "$in",
    "not in": "$nin",
}
META = "meta."


def to_engram(filters: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Translate a filter of Haystack's; one of Engram's own is returned as it is.

    Raises:
        ValueError: it compares another field than one of ``meta``, or its operator is unknown.
    """
    if not filters:
        return None
    if "operator" in filters and "conditions" in filters:
        parts = [to_engram(condition) or {} for condition in filters["conditions"]]
        if filters["operator"] == "NOT":
            return {"$not": {"$and": parts}}
        return {_find(JOINS, filters["operator"]): parts}
    if "operator" in filters and "field" in filters:
        return _comparison(filters["field"], filters["operator"], filters.get("value"))
    return dict(filters)


def _comparison(field: str, operator: str, value: Any) -> dict[str, Any]:
    name = field.removeprefix(META)
    if name == field:
        raise ValueError(f"only fields of the metadata can be compared, such as 'meta.{field}'")
    return {name: {_find(COMPARISONS, operator): value}}


def _find(names: Mapping[str, str], operator: str) -> str:
    if operator not in names:
        raise ValueError(f"unknown operator {operator!r}; there are {', '.join(names)}")
    return names[operator]
