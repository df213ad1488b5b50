"""Words by which texts are compared."""

import pytest

from engram.core.text.words import is_blank, normalise_words, words


def test_words_are_case_folded_and_have_no_marks() -> None:
    assert words("The Straße, in 1950_51: O'Neill!") == ["the", "strasse", "in", "1950", "51", "o", "neill"]
    assert normalise_words(" The  STRASSE. ") == "the strasse"
    assert (words("…"), normalise_words("")) == ([], "")


@pytest.mark.parametrize(
    "text", ["", " \n\u00a0\u3000", "\u200b\u200d", "\ufeff\u00ad", "\u2800", "\u3164", "\u202e"]
)
def test_a_text_of_which_nothing_is_seen_is_blank(text: str) -> None:
    assert is_blank(text)
    assert not any(is_blank(f"{text}{seen}{text}") for seen in ("a", ".", "é", "ي", "किं", "가", "👍", "−"))
