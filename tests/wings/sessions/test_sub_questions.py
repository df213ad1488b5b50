"""Which sub-questions are well formed, and which values fit."""

import pytest

from engram.core.text.question_triples import QuestionTriple
from engram.wings.sessions.core.sub_questions import (
    find_carried_nouns,
    fits,
    is_well_formed,
    select_whole_names,
    tidy_text,
)

NAMES = [
    "Pluto",
    "Iapetus",
    "Giovanni Cassini",
    "Warsaw",
    "The Rite of Spring",
    "Nibelung",
    "Kafka",
    "ENGRAM_WORKING",
]


@pytest.mark.parametrize(
    "text",
    [
        "the discoverer of Iapetus",
        "the first night of The Rite of Spring",
        "director of Pluto",
        "Pluto's discoverer",
        "the city where Giovanni Cassini died",
        "the observatory that photographed Pluto",
        "the craft released from Pluto",
        "where was Giovanni Cassini born",
        "into which sea does the river that Warsaw lies on flow",
        "with whom did Giovanni Cassini study",
        "were Giovanni Cassini and Pluto found in the same year",
    ],
)
def test_complete_descriptions_and_questions_pass(text: str) -> None:
    assert is_well_formed(text, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "hired the discoverer of Pluto",
        "became head of the Pluto",
        "Kustomize read messages Kafka",
        "Warsaw directed Pluto",
        "ENGRAM_WORKING which is larger by default",
        "from which city came the founder of the observatory that Warsaw",
        "with whom did Giovanni Cassini operas study the piano",
        "who Giovanni Cassini government in the year",
        "were Giovanni Cassini draft and Pluto born in the same city",
        "a key needs for Pluto",
        "which timepiece was built by Pluto that has lakes",
        "which moon was found by by Pluto",
        "the discoverer of ?1",
        "where was the discoverer born",
        "Pluto",
    ],
)
def test_incomplete_sub_question_is_not_well_formed(text: str) -> None:
    assert not is_well_formed(text, NAMES)


def test_a_noun_goes_with_the_name_that_carries_it() -> None:
    question = "With whom did the father of the composer of the Nibelung operas study the piano?"
    carried = find_carried_nouns(question, ["Nibelung"])
    assert carried == {"Nibelung": "operas"}
    assert tidy_text("the composer of the Nibelung", carried, []) == "the composer of the Nibelung operas"
    asked = tidy_text("with whom did Franz Liszt operas study the piano", carried, ["Franz Liszt"])
    assert asked == "with whom did Franz Liszt study the piano"
    assert find_carried_nouns("Where did the father of Nibelung die?", ["Nibelung"]) == {}
    assert find_carried_nouns("Where was the discoverer of Iapetus born?", ["Iapetus"]) == {}
    assert find_carried_nouns("Who leads, the head of the EDSAC project?", ["EDSAC"]) == {"EDSAC": "project"}


def test_a_part_of_a_word_is_no_name() -> None:
    assert select_whole_names("Who wrote the English-like language of Pluto?", ["English", "Pluto"]) == ["Pluto"]


@pytest.mark.parametrize(
    ("relation", "kind", "value", "sentence", "fit"),
    [
        ("was opened", "year", "Cavendish Laboratory", "It was opened.", False),
        ("was opened", "year", "1874", "It was opened in 1874.", True),
        ("designer", None, "Workmen", "Workmen called it Galloping Gertie.", False),
        ("designer", None, "Leon Moisseiff", "Leon Moisseiff designed it.", True),
        ("climbing partner", None, "Mount Everest", "They climbed Mount Everest.", False),
        ("filled", "committee", "Voyager 1", "Voyager 1 carries it.", False),
        ("filled", "committee", "Sagan Committee", "It was filled by it.", True),
        ("port", None, "Srinivasa Ramanujan", "He was a clerk at the port.", False),
        ("port", None, "Madras", "Madras has a port.", True),
    ],
)
def test_values_are_of_the_kind_that_is_asked_for(
    relation: str, kind: str | None, value: str, sentence: str, fit: bool
) -> None:
    assert fits(QuestionTriple("Pluto", relation, "?1", f"the {relation} of Pluto", kind), value, sentence) is fit
