"""Words by which texts are compared."""

from engram.core.text.words import normalise_words, words


def test_words_are_case_folded_and_have_no_marks() -> None:
    assert words("The Straße, in 1950_51: O'Neill!") == ["the", "strasse", "in", "1950", "51", "o", "neill"]
    assert normalise_words(" The  STRASSE. ") == "the strasse"
    assert (words("…"), normalise_words("")) == ([], "")
