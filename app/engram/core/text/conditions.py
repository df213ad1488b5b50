"""Conditions on the metadata of passages: comparisons, joined by and, or and not."""

from dataclasses import dataclass
from typing import Literal, Union

Scalar = Union[str, int, float, bool]  # noqa: UP007 - as a value, for pydantic, of Python 3.11 too
Comparator = Literal["equal", "less", "at-most", "more", "at-least", "contains", "starts", "ends", "present"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of one metadata field with a value.

    A field that is a list meets the comparison if one of its elements does. A field that is missing, or of another
    type than the value, meets none.

    Attributes:
        field: the name of a field of the metadata's top level.
        comparator: ``present`` means that the field is there, and neither null, an empty text nor an empty list.
            ``contains``, ``starts`` and ``ends`` compare texts. Texts are ordered by their code points.
        value: what the field is compared with; any value with ``present``.
    """

    field: str
    comparator: Comparator
    value: Scalar = ""


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


Condition = Comparison | Negation | Combination


def build_equal_to_any(field: str, values: tuple[Scalar, ...]) -> Condition:
    """The condition that a field equals one of the values.

    Raises:
        ValueError: there is no value.
    """
    return Combination("any", tuple(Comparison(field, "equal", value) for value in values))
