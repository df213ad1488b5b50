"""Questions as triples with unknowns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.text.question_triples import (
    ANSWER,
    MOST_TRIPLES,
    QuestionTriple,
    compares,
    count_intermediate_unknowns,
    fill_unknowns,
    open_unknowns,
    triples,
)

QUESTION_TRIPLES: dict[str, tuple[str, list[str], list[tuple[str, str, str]]]] = {
    "a chain": (
        "Where did the composer of film Dus Lakh die?",
        ["Dus Lakh"],
        [("Dus Lakh", "composer", "?1"), ("?1", "where did die", "?")],
    ),
    "the innermost first": (
        "Who is the mother of the director of The Long Road?",
        ["The Long Road"],
        [("The Long Road", "director", "?1"), ("?1", "who is mother of", "?")],
    ),
    "a possessive": (
        "In which year was Ada Brandt's publisher founded?",
        ["Ada Brandt"],
        [("Ada Brandt", "publisher", "?1"), ("?1", "in which year was founded", "?")],
    ),
    "a place": (
        "Who governs the city where Ada Brandt died?",
        ["Ada Brandt"],
        [("Ada Brandt", "died", "?1"), ("?1", "who governs", "?")],
    ),
    "a subject that is unknown": (
        "When did the company that built K200 dissolve?",
        ["K200"],
        [("?1", "built", "K200"), ("?1", "when did dissolve", "?")],
    ),
    "two that are compared": (
        "Who was born first, Kurt Ahrens or Lee Zeldin?",
        ["Kurt Ahrens", "Lee Zeldin"],
        [("Kurt Ahrens", "who was born first", "?"), ("Lee Zeldin", "who was born first", "?")],
    ),
    "what is compared of two": (
        "Which film has the director who is older, First Light or Second Sun?",
        ["First Light", "Second Sun"],
        [
            ("First Light", "director", "?1"),
            ("Second Sun", "director", "?2"),
            ("?1", "which film has director who is older", "?"),
            ("?2", "which film has director who is older", "?"),
        ],
    ),
    "one fact": ("What is the capital of Poland?", ["Poland"], [("Poland", "what is capital of", "?")]),
    "no name": ("Why does it rain?", [], []),
}


@pytest.mark.parametrize("case", QUESTION_TRIPLES)
def test_a_question_comes_apart(case: str) -> None:
    question, names, wanted = QUESTION_TRIPLES[case]
    assert [(one.subject, one.relation, one.object) for one in triples(question, names)] == wanted


@pytest.mark.parametrize(
    ("case", "through", "compared"),
    [
        ("a subject that is unknown", 1, False),
        ("two that are compared", 0, True),
        ("what is compared of two", 2, False),
        ("one fact", 0, False),
        ("no name", 0, False),
    ],
)
def test_bridges_of_a_question_are_its_unnamed_entities(case: str, through: int, compared: bool) -> None:
    found = triples(*QUESTION_TRIPLES[case][:2])
    assert (count_intermediate_unknowns(found), compares(found)) == (through, compared)


def test_a_phrase_asks_in_the_questions_words_with_what_is_bound_put_in() -> None:
    film, death = triples("Where did the composer of film Dus Lakh die?", ["Dus Lakh"])
    assert (film.phrase, film.unknown, film.known_end) == ("the composer of film Dus Lakh", "?1", "Dus Lakh")
    assert (death.unknown, death.known_end, open_unknowns(death.phrase)) == (ANSWER, "?1", ["?1"])
    assert fill_unknowns(death.phrase, {"?1": "Ravi"}) == "where did Ravi die"


def test_unknowns_with_a_common_prefix_are_distinct() -> None:
    assert fill_unknowns("?1 and ?11 of ?", {"?1": "a"}) == "a and ?11 of ?"
    assert QuestionTriple("?1", "wrote", "X", "").unknown == "?1"


@given(
    st.text(alphabet="abc ofthe'sX⟦⟧⟨⟩1?", max_size=120), st.lists(st.text(alphabet="Xab", min_size=1), max_size=3)
)
def test_any_text_comes_to_an_end(text: str, names: list[str]) -> None:
    found = triples(text, names)
    assert len(found) <= MOST_TRIPLES


def test_internal_marks_in_a_question_are_not_references() -> None:
    """Else a question would refer to names that it has not, or to another's unknowns."""
    for question in ("Who is ⟦1⟧?", "The mother of ⟦2⟧ or ⟨1⟩", "Who is the mother of Ada ⟦1⟧?", "⟦1⟧'s mother"):
        for names in ([], ["Ada"], ["⟦1⟧"], ["Ada ⟦1⟧"]):
            assert not any("⟦" in str(triple) for triple in triples(question, names))
    (mother, asked) = triples("Who wrote of the mother of Ada ⟦1⟧?", ["Ada ⟦1⟧"])
    assert (mother.subject.split(), mother.relation) == (["Ada", "1"], "mother")
    assert asked.object == ANSWER
