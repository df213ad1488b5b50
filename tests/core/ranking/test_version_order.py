from datetime import date

import pytest

from engram.core.ranking.version_order import PassageVersion, find_asked_version, order_versions, read_words
from engram.core.text.temporal import find_time_expressions

TODAY = date(2026, 6, 1)
TEXT = read_words("The daily travel allowance is paid in euros.")
# Passage -> the version that it is of: 1 of 2023, 2 of 2025, 3 of next year, which does not hold yet.
VERSIONS = {
    passage: PassageVersion(passage, 3, 3 - passage, date(year, 1, 1), None, is_stated=False, words=TEXT)
    for passage, year in ((1, 2023), (2, 2025), (3, 2027))
}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        pytest.param("What is the allowance now?", [2, 3, 9, 1], id="last that holds"),
        pytest.param("What is the allowance?", [2, 3, 9, 1], id="no time"),
        pytest.param("What was the allowance in 2023?", [1, 3, 9, 2], id="then"),
        pytest.param("What was the previous allowance?", [1, 3, 9, 2], id="previous"),
        pytest.param("What changed in the allowance?", [2, 1, 9, 3], id="changes"),
    ],
)
def test_the_asked_version_takes_the_best_place_of_its_text(question: str, expected: list[int]) -> None:
    intervals = find_time_expressions(question, "en")
    asked = find_asked_version(question, intervals)
    assert order_versions([1, 2, 9, 3], VERSIONS, asked, intervals, TODAY) == expected


def test_passages_of_other_texts_keep_their_places() -> None:
    other = PassageVersion(4, 4, 0, date(2024, 1, 1), None, is_stated=False, words=read_words("Visitors sign in."))
    assert order_versions([1, 4, 2], VERSIONS | {4: other}, "last", [], TODAY) == [2, 4, 1]
