"""Answers in words beside accepted ones."""

import pytest

from engram_evaluation.answer_marking import contains, mark_answer, normalise_answer, score_exact_match, token_f1


def test_squad_normalisation() -> None:
    assert normalise_answer("  The U.S.  of an   America! ") == "us of america"
    assert normalise_answer("another theory") == "another theory"


@pytest.mark.parametrize(
    ("answer", "accepted", "em", "f1", "inside"),
    [
        ("The Tagus.", ["Tagus"], 1.0, 1.0, 1.0),
        ("the river Tagus in Lisbon", ["Tagus River"], 0.0, 2 * 2 / (4 + 2), 0.0),
        ("It is the Tagus river, of course", ["Lisbon", "a Tagus river"], 0.0, 2 * 2 / (6 + 2), 1.0),
        ("north", ["no"], 0.0, 0.0, 0.0),
        ("Douro Douro", ["Douro"], 0.0, 2 * 1 / (2 + 1), 1.0),
        ("", ["Tagus"], 0.0, 0.0, 0.0),
        ("", ["the"], 1.0, 1.0, 0.0),
    ],
)
def test_marks_by_hand(answer: str, accepted: list[str], em: float, f1: float, inside: float) -> None:
    assert score_exact_match(answer, accepted) == em
    assert token_f1(answer, accepted) == pytest.approx(f1)
    assert contains(answer, accepted) == inside
    assert mark_answer(answer, accepted) == {"em": em, "f1": pytest.approx(f1), "contains": inside}


def test_exact_match_needs_an_accepted_answer() -> None:
    with pytest.raises(ValueError, match="no accepted answer"):
        score_exact_match("Tagus", [])
