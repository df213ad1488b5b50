"""Conditions on the metadata of passages: comparisons, joined by and, or and not."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, Union

Scalar = Union[str, int, float, bool]  # noqa: UP007 - as a value, for pydantic, of Python 3.11 too
Comparator = Literal[
    "equal", "less", "at-most", "more", "at-least", "contains", "starts", "ends", "present", "exists"
]

INSTANT = (
    "[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)
"""A date, or a date and time, of ISO 8601; a regular expression to Python and to Postgres."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of one metadata field with a value.

    A field that is a list meets the comparison if one of its elements does. A field that is missing, or of another
    type than the value, meets none.

    Attributes:
        field: the name of a field of the metadata's top level.
        comparator: ``present`` means that the field is there, and neither null, an empty text nor an empty list;
            ``exists``, that it is there. ``contains``, ``starts`` and ``ends`` compare texts. Texts are ordered by
            their code points.
        value: what the field is compared with; any value with ``present`` and ``exists``. A datetime, which has an
            offset, is compared with texts that write an instant: see ``parse_instant``.
    """

    field: str
    comparator: Comparator
    value: Scalar | datetime = ""


@dataclass(frozen=True, slots=True)
class Containment:
    """The condition that metadata contain a JSON object, by the rules of Postgres's ``@>``."""

    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Negation:
    """The opposite of a condition."""

    condition: "Condition"


@dataclass(frozen=True, slots=True)
class Combination:
    """Several conditions, at least one: all of them have to hold, or any.

    Raises:
        ValueError: there is none.
    """

    join: Literal["all", "any"]
    conditions: tuple["Condition", ...]

    def __post_init__(self) -> None:
        if not self.conditions:
            raise ValueError("a combination needs a condition")


Condition = Comparison | Containment | Negation | Combination


def build_comparison(field: str, comparator: Comparator, value: Scalar) -> Condition:
    """The condition that a field compares so with a value; texts that write instants are compared as instants."""
    instant = parse_instant(value) if isinstance(value, str) else None
    if instant is None or comparator not in {"equal", "less", "at-most", "more", "at-least"}:
        return Comparison(field, comparator, value)
    as_instant = Comparison(field, comparator, instant)
    if comparator != "equal":
        return as_instant
    return Combination("any", (Comparison(field, "equal", value), as_instant))


def parse_instant(text: str) -> datetime | None:
    """The instant that a text of form ``INSTANT`` writes; None for another text.

    A date is its first moment, and what names no offset is in UTC.
    """
    if not re.fullmatch(INSTANT, text):
        return None
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError:  # a day or an hour that no calendar has
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
