"""Whether what was read may hold the answer."""

import pytest

from engram.core.planning.answerable import has_answer, is_stated, missing_names
from engram.core.planning.binding import BindingSentence
from engram.core.planning.question_triples import triples

READ = [
    BindingSentence(1, "Edmund Hillary was a beekeeper from New Zealand.", (), "Edmund Hillary"),
    BindingSentence(2, "He reached the summit of Everest in 1953.", (), "Edmund Hillary"),
    BindingSentence(3, "The expedition was led by John Hunt.", (), "1953 Everest expedition"),
]


def answerable(question: str, *names: str, enough: float | None = 0.9) -> bool:
    return has_answer(question, triples(question, names), names, READ, enough)


def test_a_name_that_nothing_contains_is_not_found() -> None:
    assert missing_names("Who directed Casablanca?", ["Casablanca"], ["Edmund Hillary"]) == ["Casablanca"]
    assert not answerable("Who directed Casablanca?", "Casablanca", enough=0.99)
    assert missing_names("Who won two Nobel Prizes?", ["Nobel Prizes"], ["a Nobel Prize"]) == []


@pytest.mark.parametrize("question", ["In which Siberian region was he?", "To whom wrote a Siberian?"])
def test_what_says_a_kind_need_not_be_read(question: str) -> None:
    assert missing_names(question, ["Siberian"], ["nothing"]) == []


@pytest.mark.parametrize(
    ("question", "stated"),
    [
        ("How tall was Edmund Hillary?", False),
        ("When did Edmund Hillary reach the summit?", True),
        ("Who led the expedition?", True),
        ("Who filmed the expedition?", False),
        ("Which was higher, Edmund Hillary or John Hunt?", True),
    ],
)
def test_a_relation_is_stated_by_a_sentence_about_its_subject(question: str, stated: bool) -> None:
    names = [name for name in ("Edmund Hillary", "John Hunt") if name in question]
    assert is_stated(question, triples(question, names), names, READ) is stated


def test_where_all_is_named_coverage_and_enough_decide() -> None:
    question = "Who led the expedition up Everest in 1953?"
    assert answerable(question, "Everest", enough=0.4)
    assert answerable(question, "Everest", enough=None)
    other = "Which beekeeper of the expedition wrote letters about glaciers, huts, dogs and boots?"
    assert not answerable(other, enough=0.4)
    assert answerable(other, enough=0.9)
    assert not has_answer(other, [], [], [], None)
