from datetime import date

import numpy as np
import pytest

from engram.core.ranking.version_order import (
    PassageVersion,
    compute_age_terms,
    find_asked_version,
    order_versions,
    read_words,
)
from engram.core.text.document_versions import Standing
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


def version(
    number: int,
    year: int,
    status: Standing | None = None,
    words: str = "same",
    *,
    stated: bool = False,
    until: date | None = None,
) -> PassageVersion:
    held = frozenset(words.split())
    return PassageVersion(number, 2, 2 - number, date(year, 1, 1), status, stated, held, until)


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        pytest.param(version(2, 2025), [9, 2, 1], id="holds"),
        pytest.param(version(2, 2025, "draft"), [9, 1, 2], id="draft"),
        pytest.param(version(2, 2025, "retired"), [9, 1, 2], id="withdrawn"),
        pytest.param(version(2, 2027), [9, 1, 2], id="future"),
        pytest.param(version(2, 2025, until=TODAY), [9, 2, 1], id="last day"),
        pytest.param(version(2, 2025, until=date(2026, 5, 31)), [9, 1, 2], id="ended"),
        pytest.param(version(2, 2025, words="other"), [9, 1, 2], id="other words"),
        pytest.param(version(2, 2025, words="other", stated=True), [9, 2, 1], id="other words but stated"),
    ],
)
def test_the_version_that_holds_comes_first(later: PassageVersion, expected: list[int]) -> None:
    versions = {1: version(1, 2023, stated=later.is_stated), 2: later}
    assert order_versions([9, 1, 2], versions, "last", [], TODAY) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        pytest.param("Was hat sich geändert?", "changes", id="German changes"),
        pytest.param("Qu'est-ce qui a changé ?", "changes", id="French changes"),
        pytest.param("¿Qué cambió?", "changes", id="Spanish changes"),
        pytest.param("Wie hoch war es früher?", "previous", id="German previous"),
        pytest.param("Quel était le montant précédent ?", "previous", id="French previous"),
        pytest.param("¿Cuál era el importe anterior?", "previous", id="Spanish previous"),
        pytest.param("How do I exchange it?", "last", id="exchange"),
        pytest.param("How do I change my password?", "last", id="instruction"),
        pytest.param("Can I change the booking?", "last", id="permission"),
        pytest.param("Wie kann ich mein Passwort ändern?", "last", id="German instruction"),
        pytest.param("Comment modifier mon mot de passe ?", "last", id="French instruction"),
        pytest.param("¿Cómo cambio mi contraseña?", "last", id="Spanish instruction"),
        pytest.param("What will change in 2025?", "changes", id="future"),
        pytest.param("What is the change to the allowance?", "changes", id="noun"),
        pytest.param("Welche Änderungen gab es?", "changes", id="German noun"),
    ],
)
def test_the_version_that_a_question_asks_for(question: str, expected: str) -> None:
    assert find_asked_version(question, []) == expected


@pytest.mark.parametrize(
    ("dates", "expected"),
    [
        # Ages 0, 365 and 730 days, of which 365 is the median; undated and future ones count as of this age.
        ([TODAY, date(2025, 6, 1), date(2024, 6, 1), None, date(2027, 1, 1)], [1.0, 0.0, -1.0, 0.0, 0.0]),
        ([None, date(2020, 1, 1)], [0.0, 0.0]),
        ([None], [0.0]),
        ([], []),
    ],
)
def test_each_half_life_halves_the_odds(dates: list[date | None], expected: list[float]) -> None:
    assert compute_age_terms(dates, 365.0, TODAY) / np.log(2) == pytest.approx(expected)
