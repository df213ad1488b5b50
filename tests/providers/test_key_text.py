"""The text of passage keys, built in each of the four ways."""

from collections.abc import Sequence
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.passage_keys.key_text import KEYWORDS, LEADING_WORDS, KeyBuilding
from engram.providers.language import key_text, terms

SENTENCES = (
    "Marie Curie was born in Warsaw.",
    "She discovered polonium in Paris.",
    "She discovered radium as well.",
    "Her laboratories stood in Paris.",
)
TEXT = " ".join(SENTENCES)
BUILDINGS: Sequence[KeyBuilding] = get_args(KeyBuilding)


@pytest.mark.parametrize(
    ("building", "titled", "untitled"),
    [
        ("full", f"Marie Curie. {TEXT}", TEXT),
        ("title", "Marie Curie", SENTENCES[0]),
        ("abstract", f"Marie Curie. {' '.join(SENTENCES[:3])}", " ".join(SENTENCES[:3])),
        (
            "keywords",
            "Marie, Curie, born, Warsaw, discovered, polonium, Paris, radium, well, laboratories, stood",
            "Marie, Curie, born, Warsaw, discovered, polonium, Paris, radium, well, laboratories, stood",
        ),
    ],
)
def test_each_way_of_building(building: KeyBuilding, titled: str, untitled: str) -> None:
    assert key_text(building, "Marie Curie", TEXT, SENTENCES, "en") == titled
    assert key_text(building, None, TEXT, SENTENCES, "en") == untitled


def test_keywords_are_words_as_they_are_written_and_stand_for_their_terms() -> None:
    rare = [f"unusualword{chr(97 + a)}{chr(97 + b)}" for a in range(5) for b in range(5)]
    text = f"Cafés and laboratories: {', '.join(rare)}. Laboratories, laboratories."
    key = key_text("keywords", None, text, [text], "en")
    assert key.startswith("laboratories, unusualwordaa, ")
    assert len(key.split(", ")) == KEYWORDS
    assert set(terms(key, "en")) <= set(terms(text, "en"))
    assert "Cafés" in key_text("keywords", "Cafés", text, [text], "en")


@pytest.mark.parametrize("building", BUILDINGS)
def test_key_text_falls_back_to_the_passage_text(building: KeyBuilding) -> None:
    assert key_text(building, None, "It is that.", [], "en") == "It is that."


def test_a_text_without_sentences_ends_is_cut() -> None:
    text = "word " * 1000
    assert len(key_text("title", None, text, [text], "en").split()) == LEADING_WORDS
    assert len(key_text("abstract", "Words", text, [text], "en").split()) == LEADING_WORDS + 1


@given(st.sampled_from(BUILDINGS), st.none() | st.text().filter(str.strip), st.text().filter(str.strip))
def test_never_blank(building: KeyBuilding, title: str | None, text: str) -> None:
    assert key_text(building, title, text, [text], "en").strip()
