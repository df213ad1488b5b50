"""Answers that say the same: names in several wordings, and what only looks alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.wings.sessions.core.answer_groups import group_answers

NAMES = st.lists(st.sampled_from(["Czerny", "Carl Czerny", "C. Czerny", "Bach", "J. S. Bach", "1809", "the Tagus"]))


@pytest.mark.parametrize(
    "same",
    [
        ["Czerny", "Carl Czerny"],
        ["carl czerny.", "Carl Czerny"],
        ["C. Czerny", "Carl Czerny", "Czerny"],
        ["Johann Bach", "Johann Sebastian Bach"],
        ["J. S. Bach", "Johann Sebastian Bach"],
        ["New York", "New York City"],
        ["the Tagus", "Tagus"],
        ["University of Oslo", "the University of Oslo"],
    ],
)
def test_single_answer_is_one_group(same: list[str]) -> None:
    assert group_answers(same) == [list(range(len(same)))]
    assert group_answers(same[::-1]) == [list(range(len(same)))]


@pytest.mark.parametrize(
    "different",
    [
        ["Carl Czerny", "Carl Bach"],
        ["Bach", "Johann Bach", "Carl Bach"],
        ["Paris", "Paris Hilton"],
        ["Paris", "not Paris"],
        ["1809", "between 1809 and 1815"],
        ["5", "15"],
        ["yes", "no"],
        ["Henry", "Henry VIII"],
        ["!", "?!x"],
    ],
)
def test_different_answers(different: list[str]) -> None:
    assert group_answers(different) == [[place] for place in range(len(different))]


@given(NAMES)
def test_each_answer_is_in_one_group_and_equal_ones_are_together(answers: list[str]) -> None:
    groups = group_answers(answers)
    assert sorted(place for group in groups for place in group) == list(range(len(answers)))
    for answer in answers:
        assert sum(any(answers[place] == answer for place in group) for group in groups) == 1
