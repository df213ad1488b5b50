"""Ids beside another one."""

import pytest

from engram.core.text.passage_numbers import list_neighbour_ids


@pytest.mark.parametrize(
    ("passage_id", "before", "after"),
    [
        ("a.pdf#2", ["a.pdf#1", "a.pdf#0"], ["a.pdf#3"]),
        ("a.pdf#0", [], ["a.pdf#1"]),
        ("a.pdf#10", ["a.pdf#9", "a.pdf#8"], ["a.pdf#11"]),
        ("mail.eml#a.pdf!1", ["mail.eml#a.pdf!0"], ["mail.eml#a.pdf!2"]),
        ("page-099", ["page-098", "page-097"], ["page-100"]),
        ("7", ["6", "5"], ["8"]),
        ("curie", [], []),
        ("a.pdf#2b", [], []),
    ],
)
def test_neighbours_have_the_next_numbers(passage_id: str, before: list[str], after: list[str]) -> None:
    assert list_neighbour_ids(passage_id, 2, 1) == (before, after)
