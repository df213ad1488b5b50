"""When two names are one, spelt otherwise."""

import pytest

from engram.core.text.spelling import normalise_spelling


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("muhammad ali", "muhamad ali"),
        ("spider-man", "spiderman"),
        ("new york", "newyork"),
        ("j. r. r. tolkien", "jrr tolkien"),
        ("beyoncé knowles", "beyonce knowles"),
        ("pyotr tchaikovsky", "piotr tchaikovski"),
        ("stephen hawking", "stefen hawking"),
        ("simon & garfunkel", "simon and garfunkel"),
        ("mississippi", "misisipi"),
    ],
)
def test_spelt_otherwise_is_the_same(one: str, other: str) -> None:
    assert normalise_spelling(one) == normalise_spelling(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("lothair ii", "lothair i"),
        ("route 66", "route 6"),
        ("1988", "1998"),
        ("ann lee", "an lee"),
        ("mercury (planet)", "mercury"),
        ("ada lovelace", "ida lovelace"),
        ("か", "が"),
        ("!!!", "?!"),
    ],
)
def test_other_spellings_stay_apart(one: str, other: str) -> None:
    assert normalise_spelling(one) != normalise_spelling(other)


@pytest.mark.parametrize("name", ["", "!!!", "東京", "ßeta", "a" * 200])
def test_every_name_has_a_key_that_stays(name: str) -> None:
    assert normalise_spelling(normalise_spelling(name)) == normalise_spelling(name)
    assert bool(normalise_spelling(name)) == bool(name)
