"""Filters on metadata as Postgres reads them: containment, predicates of SQL/JSON path, instants."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from engram.core.text.conditions import (
    INSTANT,
    Comparator,
    Comparison,
    Condition,
    Containment,
    Negation,
    Scalar,
)
from engram.core.text.filters import read_filter

_OPERATORS: dict[Comparator, str] = {
    "equal": "=",
    "less": "<",
    "at-most": "<=",
    "more": ">",
    "at-least": ">=",
}
_PRESENT = '@.type() != "null" && (@.type() != "string" || @ != "")'
_ZONED = """
    written.text || CASE WHEN length(written.text) = 10 THEN 'T00:00Z'
                         WHEN written.text ~ '^.{11}.*[Zz+-]' THEN '' ELSE 'Z' END
"""
"""A text that writes an instant, with its offset; what names none is in UTC."""


@dataclass(frozen=True, slots=True)
class PassageCondition:
    """SQL that is true or false, never unknown, of rows ``passage p``, and the values of its parameters.

    ``indexed``: the index of metadata finds these rows.
    """

    sql: str
    values: Mapping[str, Any]
    indexed: bool


def compile_filter(document: Mapping[str, Any] | None) -> PassageCondition | None:
    """Compile a filter; None if it lets every passage through.

    Raises:
        ValueError: it is no filter, see ``read_filter``.
    """
    condition = None if document is None else read_filter(document)
    return None if condition is None else compile_condition(condition)


def compile_condition(condition: Condition) -> PassageCondition:
    """Compile a condition on metadata."""
    values: dict[str, Any] = {}
    return PassageCondition(_compile(condition, values), values, _is_indexed(condition))


def _is_indexed(condition: Condition) -> bool:
    """Whether values that passages have to contain are enough to find them by."""
    if isinstance(condition, Comparison):
        return condition.comparator == "equal" and not isinstance(condition.value, datetime)
    if isinstance(condition, Containment):
        return True
    if isinstance(condition, Negation):
        return False
    return (any if condition.join == "all" else all)(map(_is_indexed, condition.conditions))


def _compile(condition: Condition, values: dict[str, Any]) -> str:
    """Compile a condition, and add its parameters to ``values``."""
    path = _path(condition)
    if path is not None:  # one predicate, which an index helps with
        return f"p.metadata @@ %({_add(values, path)})s::jsonpath"
    if isinstance(condition, Containment):
        return f"p.metadata @> %({_add(values, Jsonb(dict(condition.document)))})s"
    if isinstance(condition, Comparison):
        return _compile_instant(condition, values)
    if isinstance(condition, Negation):
        return f"NOT ({_compile(condition.condition, values)})"
    operator = " AND " if condition.join == "all" else " OR "
    return operator.join(f"({_compile(part, values)})" for part in condition.conditions)


def _compile_instant(comparison: Comparison, values: dict[str, Any]) -> str:
    """Compile a comparison with an instant; texts that write none do not meet it."""
    texts = _add(values, f'$.{json.dumps(comparison.field)} ? (@.type() == "string")')
    comparator, instant = _OPERATORS[comparison.comparator], _add(values, comparison.value)
    return f"""EXISTS (
        SELECT FROM jsonb_path_query(p.metadata, %({texts})s::jsonpath) AS held(value),
            LATERAL (SELECT held.value #>> '{{}}') AS written(text)
        WHERE CASE WHEN written.text ~ '^{INSTANT}$' AND pg_input_is_valid({_ZONED}, 'timestamptz')
                   THEN ({_ZONED})::timestamptz {comparator} %({instant})s END
    )"""


def _add(values: dict[str, Any], value: Any) -> str:
    name = f"filter_{len(values)}"
    values[name] = value
    return name


def _path(condition: Condition) -> str | None:
    """The predicate for a condition, for ``metadata @@ predicate``; None if SQL/JSON path cannot say it.

    It is true or false of every metadata object, never unknown, so that its negation is its opposite: within a
    filter expression, a comparison of different types is false.
    """
    if isinstance(condition, Comparison):
        if isinstance(condition.value, datetime):
            return None
        field = f"$.{json.dumps(condition.field)}"
        if condition.comparator == "exists":
            return f"exists({field})"
        return f"exists({field} ? ({_predicate(condition.comparator, condition.value)}))"
    if isinstance(condition, Containment):
        return None
    if isinstance(condition, Negation):
        inner = _path(condition.condition)
        return None if inner is None else f"!({inner})"
    parts = [_path(part) for part in condition.conditions]
    operator = " && " if condition.join == "all" else " || "
    return None if None in parts else operator.join(f"({part})" for part in parts)


def _predicate(comparator: Comparator, value: Scalar) -> str:
    match comparator:
        case "present":
            return _PRESENT
        case "contains":
            return f'@ like_regex {json.dumps(value)} flag "q"'
        case "starts":
            return f"@ starts with {json.dumps(value)}"
        case "ends":
            return f"@ like_regex {json.dumps(_literal(str(value)) + '$')}"
        case "equal":
            return f"@ == {json.dumps(value)}"
        case _:
            return f"@ {_OPERATORS[comparator]} {json.dumps(value)}"


def _literal(text: str) -> str:
    """The regular expression of a text as it stands."""
    return re.sub(r"([^\w\s])", r"\\\1", text)
