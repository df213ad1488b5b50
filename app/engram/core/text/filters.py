"""Filters on the metadata of passages as callers write them: JSON objects with operators."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from engram.core.text.conditions import (
    INSTANT,
    Combination,
    Comparator,
    Comparison,
    Condition,
    Containment,
    Negation,
    Scalar,
    build_comparison,
    parse_instant,
)
from engram.core.text.spelling import compose

LEAST_INTEGER, GREATEST_INTEGER = -(2**63), 2**63 - 1

_ORDERS: dict[str, Comparator] = {"$gt": "more", "$gte": "at-least", "$lt": "less", "$lte": "at-most"}
_TEXTS: dict[str, Comparator] = {"$contains": "contains", "$starts": "starts", "$ends": "ends"}
_PRESENCES: dict[str, Comparator] = {"$exists": "exists", "$present": "present"}
_JOINS = ("$and", "$or", "$not")
_SYMBOLS = {
    ">": "$gt", ">=": "$gte", "<": "$lt", "<=": "$lte", "=": "$eq", "==": "$eq", "!=": "$ne", "<>": "$ne",
    "neq": "$ne", "not_in": "$nin", "between": "$gte",
}  # fmt: skip
"""Operators of other products -> ours."""
_FOREIGN_JOINS = {
    "and": "$and", "or": "$or", "not": "$not", "must": "$and", "should": "$or", "must_not": "$not",
    "filters": "$and", "conditions": "$and", "operands": "$and",
}  # fmt: skip
"""What joins filters in other products, where it is no field with a list of objects -> ours."""
_FOREIGN_OPERATORS = ("operator", "comparison_operator", "op")
"""Where the operator stands in other products, as in ``{"field": "year", "operator": ">=", "value": 1600}``."""
_OTHER_DATE = re.compile(
    r"[0-9]{4}([-./])[0-9]{1,2}\1[0-9]{1,2}(?![0-9])|[0-9]{1,2}([-./])[0-9]{1,2}\2[0-9]{4}(?![0-9])"
)
_DAY = re.compile("[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])")


def read_filter(document: Mapping[str, Any]) -> Condition | None:
    """Read a filter; None if it lets every passage through.

    ``{"topic": "space"}`` lets passages through whose metadata have this value, or a list with it. Operators stand
    below a field of the top level, ``{"year": {"$gte": 1990, "$lt": 2000}}``. ``$and`` and ``$or`` join a list of
    filters, and ``$not`` turns one around. All parts of an object must hold. Operators follow ``Comparison``: of a
    list, one element has to meet them. ``$ne``, ``$nin`` and ``$not`` hold also where the field is missing. Null
    equals a missing field. Texts are composed (NFC), as those of metadata are.

    Raises:
        ValueError: an operator is unknown, stands in a wrong place, lacks its ``$`` or has a value that it does not
            take, such as a date that no calendar has; or a whole number has more than 64 bits.
    """
    _check_numbers(document)
    return _read(compose(dict(document))) if document else None


def _read(document: Mapping[str, Any]) -> Condition:
    parts: list[Condition] = []
    contained: dict[str, Any] = {}
    for name, value in document.items():
        if name.startswith("$"):
            parts.append(_read_join(name, value))
        elif isinstance(value, dict) and any(key.startswith("$") for key in value):
            parts.append(_read_field(name, value))
        else:
            _refuse_operators(name, value)
            _refuse_bare_operators(name, value)
            _refuse_impossible_days(name, value)
            if value is None:
                parts.append(_build_absence(name))
            elif isinstance(value, str | int | float):
                parts.append(Comparison(name, "equal", value))
            elif isinstance(value, dict):
                parts.append(Combination("any", (Containment({name: value}), Containment({name: [value]}))))
            else:
                contained[name] = value
    if contained or not parts:
        parts.insert(0, Containment(contained))
    return _combine(parts)


def _combine(parts: list[Condition]) -> Condition:
    return parts[0] if len(parts) == 1 else Combination("all", tuple(parts))


def _read_join(operator: str, value: Any) -> Condition:
    if operator == "$not":
        if not isinstance(value, dict):
            raise ValueError("$not takes a filter, a JSON object")
        return Negation(_read(value))
    if operator not in _JOINS:
        known = ", ".join(_JOINS)
        raise ValueError(f"{operator!r} is no operator that joins filters; there are {known}")
    if not isinstance(value, list) or not value or not all(isinstance(one, dict) for one in value):
        raise ValueError(f"{operator} takes a list of at least one filter, each a JSON object")
    return Combination("all" if operator == "$and" else "any", tuple(_read(one) for one in value))


def _read_field(field: str, operators: Mapping[str, Any]) -> Condition:
    """Read ``{"$gte": 1990, "$lt": 2000}``: all of them must hold of the field."""
    parts: list[Condition] = []
    for operator, value in operators.items():
        reader = _READERS.get(operator)
        if reader is None:
            known = ", ".join(_READERS)
            raise ValueError(f"{operator!r} below {field!r} is no operator; there are {known}")
        parts.append(reader(field, operator, value))
    return _combine(parts)


def _read_equality(field: str, operator: str, value: Any) -> Condition:
    equal = _build_equality(field, operator, value)
    return equal if operator == "$eq" else Negation(equal)


def _read_membership(field: str, operator: str, value: Any) -> Condition:
    if not isinstance(value, list) or not value:
        raise ValueError(f"{operator} takes a list of at least one value")
    equal = Combination("any", tuple(_build_equality(field, operator, one) for one in value))
    return equal if operator == "$in" else Negation(equal)


def _build_equality(field: str, operator: str, value: Any) -> Condition:
    if value is None:
        return _build_absence(field)
    scalar = _check_scalar(operator, value)
    _refuse_impossible_days(operator, scalar)
    return build_comparison(field, "equal", scalar)


def _build_absence(field: str) -> Condition:
    """Build the condition that a field is missing or null, or has null in a list."""
    nulls = (Containment({field: None}), Containment({field: [None]}))
    return Combination("any", (Negation(Comparison(field, "exists")), *nulls))


def _read_order(field: str, operator: str, value: Any) -> Condition:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{operator} takes a number or a text, such as a date")  # noqa: TRY004 - bad input
    if isinstance(value, str):
        _refuse_impossible_date(operator, value)
        _refuse_other_date(operator, value)
    return build_comparison(field, _ORDERS[operator], value)


def _read_text(field: str, operator: str, value: Any) -> Condition:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{operator} takes a text that is not empty")
    return Comparison(field, _TEXTS[operator], value)


def _read_presence(field: str, operator: str, value: Any) -> Condition:
    if not isinstance(value, bool):
        raise ValueError(f"{operator} takes true or false")  # noqa: TRY004 - bad input
    present = Comparison(field, _PRESENCES[operator])
    return present if value else Negation(present)


def _read_negation(field: str, operator: str, value: Any) -> Condition:
    if not isinstance(value, dict) or not value:
        raise ValueError(f'{operator} below a field takes operators, such as {{"$gt": 5}}')
    return Negation(_read_field(field, value))


_READERS: dict[str, Callable[[str, str, Any], Condition]] = {
    **dict.fromkeys(("$eq", "$ne"), _read_equality),
    **dict.fromkeys(_ORDERS, _read_order),
    **dict.fromkeys(("$in", "$nin"), _read_membership),
    "$not": _read_negation,
    **dict.fromkeys(_PRESENCES, _read_presence),
    **dict.fromkeys(_TEXTS, _read_text),
}


def _check_scalar(operator: str, value: Any) -> Scalar:
    if not isinstance(value, str | int | float):
        raise ValueError(  # noqa: TRY004 - bad input
            f"{operator} compares with texts, numbers, true, false and null"
        )
    return value


def _refuse_operators(field: str, value: Any) -> None:
    """Refuse operators deep in an object that metadata have to contain: they would match nothing, in silence."""
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _refuse_operators(field, item)
        if isinstance(item, dict) and any(key.startswith("$") for key in item):
            raise ValueError(
                f"operators stand directly below a field of the metadata's top level, not deeper in {field!r}"
            )


def _refuse_bare_operators(field: str, value: Any) -> None:
    """Refuse operators without their ``$``, and those of others: metadata that hold such objects are unlikely."""
    if isinstance(value, dict) and value and all(_name_operator(key) is not None for key in value):
        raise ValueError(f"operators begin with $: write {_name_operator(next(iter(value)))} below {field!r}")
    if field.lower() in _FOREIGN_OPERATORS and isinstance(value, str) and (meant := _name_operator(value)):
        raise ValueError(f"operators stand below a field: write {{FIELD: {{{meant!r}: VALUE}}}}")
    lists_filters = isinstance(value, list) and any(isinstance(one, dict) for one in value)
    if (field.lower() == "not" and isinstance(value, dict)) or (field.lower() in _FOREIGN_JOINS and lists_filters):
        raise ValueError(f"operators begin with $: write {_FOREIGN_JOINS[field.lower()]}")


def _name_operator(key: str) -> str | None:
    """The operator that a key without ``$`` means."""
    meant = _SYMBOLS.get(key, f"${key.lower()}")
    return meant if meant in _READERS else None


def _refuse_impossible_days(operator: str, value: Any) -> None:
    """Refuse a day that no calendar has, as a value or in a list."""
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and _DAY.match(text):  # other figures may number a part
            _refuse_impossible_date(operator, text)


def _refuse_impossible_date(operator: str, text: str) -> None:
    if re.fullmatch(INSTANT, text) and parse_instant(text) is None:
        raise ValueError(f"{operator} takes a date of the calendar; {text!r} is none")


def _refuse_other_date(operator: str, text: str) -> None:
    """Refuse a date that is not of ISO 8601: as a text it would be compared by its first figures."""
    if _OTHER_DATE.match(text) and not re.fullmatch(INSTANT, text):
        raise ValueError(f"{operator} takes a date such as 2026-05-01, and not {text!r}")


def _check_numbers(value: Any) -> None:
    """Refuse whole numbers that metadata cannot hold exactly."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _check_numbers(item)
    elif isinstance(value, int) and not LEAST_INTEGER <= value <= GREATEST_INTEGER:
        raise ValueError("must not hold whole numbers of more than 64 bits; write these as text")
