"""Unknowns bound one after another, each by what was bound before it."""

from collections.abc import Mapping

from engram.core.text.question_triples import ANSWER, QuestionTriple
from engram.wings.sessions.core.binding import BindingSentence
from engram.wings.sessions.core.chain_binding import bind_chain

SPLIT = [
    QuestionTriple("The Salt Road", "director", "?1", "the director of The Salt Road"),
    QuestionTriple("?1", "birthplace", "?2", "the birthplace of ?1"),
    QuestionTriple("?2", "river", ANSWER, "the river of ?2"),
]
SENTENCES = [
    BindingSentence(7, "The Salt Road was directed by Ada Brandt.", ["The Salt Road", "Ada Brandt"]),
    BindingSentence(8, "Ada Brandt was born in Emden.", ["Ada Brandt", "Emden"]),
]


def bind_values(
    values: Mapping[str, str], sentences: list[BindingSentence] = SENTENCES
) -> dict[str, tuple[str, int]]:
    found = bind_chain(SPLIT, values, sentences, ["The Salt Road"])
    return {one.unknown: (one.value, one.sentence_id) for one in found}


def test_a_value_makes_the_next_triple_known() -> None:
    assert bind_values({}) == {"?1": ("Ada Brandt", 7), "?2": ("Emden", 8)}


def test_unknown_after_an_open_one_is_not_bound() -> None:
    assert bind_values({}, SENTENCES[1:]) == {}


def test_bound_unknowns_and_the_answer_are_left_alone() -> None:
    assert bind_values({"?1": "Ada Brandt"}) == {"?2": ("Emden", 8)}
    assert bind_values({"?1": "Ada Brandt", "?2": "Emden"}) == {}


def test_refused_triple_binds_nothing_and_is_asked_with_the_values_so_far() -> None:
    asked: list[tuple[str, dict[str, str]]] = []

    def refuse_second(triple: QuestionTriple, values: Mapping[str, str]) -> bool:
        asked.append((triple.unknown, dict(values)))
        return triple.unknown != "?2"

    found = bind_chain(SPLIT, {}, SENTENCES, ["The Salt Road"], refuse_second)
    assert [one.unknown for one in found] == ["?1"]
    assert asked == [("?1", {}), ("?2", {"?1": "Ada Brandt"})]
