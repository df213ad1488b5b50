"""Responses that are made of what a service returns and of computed fields."""

from dataclasses import dataclass

import pytest

from engram.api.schemas import ResponseModel


@dataclass(frozen=True)
class Place:
    name: str
    people: int


class TownOut(ResponseModel):
    """A town."""

    name: str
    people: int
    large: bool


def test_fields_are_read_unless_they_are_computed() -> None:
    assert TownOut.combine(Place("Emden", 50_000), people=49_913, large=False).model_dump() == {
        "name": "Emden",
        "people": 49_913,
        "large": False,
    }


def test_a_field_that_the_source_lacks_must_be_computed() -> None:
    with pytest.raises(AttributeError, match="large"):
        TownOut.combine(Place("Emden", 50_000))
