"""The coverage rule: which words of a question its evidence must name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.ranking.coverage import content_words, coverage


def test_content_words_leave_out_function_words_plurals_and_possessives() -> None:
    assert content_words("Which of the rivers is Warsaw's?") == {"river", "warsaw"}


@pytest.mark.parametrize(
    ("question", "evidence", "share"),
    [
        ("Where was Marie Curie born?", ["Marie Curie was born in Warsaw."], 3 / 3),
        ("Where was Marie Curie born?", ["Marie lived.", "Curie too."], 2 / 3),
        ("Where was Marie Curie born?", [], 0.0),
        ("Who is who?", [], 1.0),
        ("Rivers?", ["a river"], 1.0),
    ],
)
def test_coverage_is_the_share_of_content_words_named(question: str, evidence: list[str], share: float) -> None:
    assert coverage(question, evidence) == pytest.approx(share)


@given(st.text(max_size=40), st.lists(st.text(max_size=40), max_size=4), st.text(max_size=40))
def test_more_evidence_never_covers_less(question: str, evidence: list[str], more: str) -> None:
    before = coverage(question, evidence)

    assert 0.0 <= before <= coverage(question, [*evidence, more]) <= 1.0


@given(st.text(max_size=60))
def test_a_question_covers_itself(question: str) -> None:
    assert coverage(question, [question]) == 1.0
