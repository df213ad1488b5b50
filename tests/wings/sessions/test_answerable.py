"""Whether what was read may hold the answer."""

import pytest

from engram.core.ranking.coverage import content_words
from engram.core.text.question_triples import triples
from engram.wings.sessions.core.answerable import (
    ReadSentence,
    has_answer,
    is_stated,
    list_missing_names,
    question_share,
)
from engram.wings.sessions.core.binding import BindingSentence

READ = [
    BindingSentence(1, "Edmund Hillary was a beekeeper from New Zealand.", (), "Edmund Hillary"),
    BindingSentence(2, "He reached the summit of Everest in 1953.", (), "Edmund Hillary"),
    BindingSentence(3, "The expedition was led by John Hunt.", (), "1953 Everest expedition"),
]


def read(*told: tuple[int, BindingSentence]) -> list[ReadSentence]:
    return [ReadSentence(key, one, content_words(f"{one.title or ''} {one.text}")) for key, one in told]


def answerable(question: str, *names: str, sufficiency: float | None = 0.9) -> bool:
    sentences = read((1, READ[0]), (1, READ[1]), (2, READ[2]))
    weights = dict.fromkeys(content_words(question), 1.0)
    return has_answer(question, triples(question, names), names, sentences, weights, sufficiency)


def test_a_name_that_nothing_contains_is_not_found() -> None:
    assert list_missing_names("Who directed Casablanca?", ["Casablanca"], ["Edmund Hillary"]) == ["Casablanca"]
    assert not answerable("Who directed Casablanca?", "Casablanca", sufficiency=0.99)
    assert list_missing_names("Who won two Nobel Prizes?", ["Nobel Prizes"], ["a Nobel Prize"]) == []


@pytest.mark.parametrize("question", ["In which Siberian region was he?", "To whom wrote a Siberian?"])
def test_words_for_kinds_are_no_missing_names(question: str) -> None:
    assert list_missing_names(question, ["Siberian"], ["nothing"]) == []


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


def test_read_share_and_sufficiency_decide_once_all_names_are_read() -> None:
    question = "Who led the expedition up Everest in 1953?"  # 4 words; led by John Hunt, in one sentence
    assert answerable(question, "Everest", sufficiency=0.4)
    assert answerable(question, "Everest", sufficiency=None)
    other = "Which beekeeper of the expedition wrote letters about glaciers, huts, dogs and boots?"
    assert not answerable(other, sufficiency=0.4)
    assert answerable(other, sufficiency=0.9)
    assert not has_answer(other, [], [], [], dict.fromkeys(content_words(other), 1.0), None)


def test_words_scattered_over_passages_count_only_where_the_evidence_is_scattered() -> None:
    sentences = read(
        (1, BindingSentence(1, "The doctor checks a database.", ())),
        (2, BindingSentence(2, "A command writes logs.", ())),
    )
    words = dict.fromkeys(("doctor", "command"), 1.0)
    assert question_share("Which doctor has a command?", [], sentences, words) == (1 / 2 + 1 / 2) / 2
    both = triples("Which is newer, Doctor or Command?", ["Doctor", "Command"])
    assert question_share("Which is newer, Doctor or Command?", both, sentences, words) == (1 + 1 / 2) / 2


def test_a_sentence_without_what_the_question_word_asks_for_does_not_count() -> None:
    dated = BindingSentence(1, "The bridge was opened in 1932.", ())
    vague = BindingSentence(2, "The bridge was opened with a parade.", ())
    words = {"bridge": 1.0, "opened": 3.0}
    question = "When was the bridge opened?"
    assert question_share(question, [], read((1, dated)), words) == 1.0
    assert question_share(question, [], read((1, vague)), words) == (1 + 0) / 2


def test_rare_words_weigh_more() -> None:
    sentences = read((1, BindingSentence(1, "How keys are kept on disk.", ())))
    assert question_share("How are keys encrypted?", [], sentences, {"key": 1.0, "encrypted": 7.0}) == 1 / 8
    assert question_share("What of it?", [], sentences, {}) == 1.0
