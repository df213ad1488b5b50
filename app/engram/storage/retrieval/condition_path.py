"""Conditions on metadata as Postgres reads them: predicates of SQL/JSON path."""

import json
import re

from engram.core.text.conditions import Comparator, Comparison, Condition, Negation, Scalar

_OPERATORS: dict[Comparator, str] = {
    "equal": "==",
    "less": "<",
    "at-most": "<=",
    "more": ">",
    "at-least": ">=",
}
_PRESENT = '@.type() != "null" && (@.type() != "string" || @ != "")'


def condition_path(condition: Condition) -> str:
    """The predicate for a condition, for ``metadata @@ predicate``.

    It is true or false of every metadata object, never unknown, so that its negation is its opposite: within a
    filter expression, a comparison of different types is false.
    """
    if isinstance(condition, Comparison):
        return f"exists($.{json.dumps(condition.field)} ? ({_filter(condition.comparator, condition.value)}))"
    if isinstance(condition, Negation):
        return f"!({condition_path(condition.condition)})"
    operator = " && " if condition.join == "all" else " || "
    return operator.join(f"({condition_path(part)})" for part in condition.conditions)


def _filter(comparator: Comparator, value: Scalar) -> str:
    match comparator:
        case "present":
            return _PRESENT
        case "contains":
            return f'@ like_regex {json.dumps(value)} flag "q"'
        case "starts":
            return f"@ starts with {json.dumps(value)}"
        case "ends":
            return f"@ like_regex {json.dumps(_literal(str(value)) + '$')}"
        case _:
            return f"@ {_OPERATORS[comparator]} {json.dumps(value)}"


def _literal(text: str) -> str:
    """The regular expression of a text as it stands."""
    return re.sub(r"([^\w\s])", r"\\\1", text)
