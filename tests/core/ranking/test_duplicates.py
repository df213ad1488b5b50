"""Which texts are near-duplicates. The cases were written before the rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.ranking.duplicates import is_duplicate

TEXT = (
    "Opening hours. The museum in Lisbon was founded in 1905 by Maria Costa. It shows 240 paintings and a broad "
    "set of drawings from private collections, and visitors can borrow an audio guide at the entrance."
)
FOOTER = " © 2021 Museum Press Ltd. All rights reserved."
SAME = {
    "whitespace": TEXT.replace(" ", "\n  "),
    "case": TEXT.upper(),
    "punctuation": TEXT.replace(".", " !").replace(",", ";"),
    "dashes and quotes": "“" + TEXT.replace("audio guide", "audio-guide") + "”",
    "appended footer": TEXT + FOOTER,
    "appended lines": TEXT + "\n\nLast updated 3 March 2021\nPage 2 of 9",
    "prepended header": "Internal use only, printed on 4 May 2020 by Ana. " + TEXT,
    "one changed word": TEXT.replace("broad", "wide"),
    "one misspelt word": TEXT.replace("entrance", "entrence"),
    "one word more": TEXT.replace("audio guide", "audio tour guide"),
}
OTHER = {
    "year": TEXT.replace("1905", "1906"),
    "number": TEXT.replace("240", "2400"),
    "name of a person": TEXT.replace("Maria", "Marta"),
    "name of a place": TEXT.replace("Lisbon", "Porto"),
    "negation": TEXT.replace("can borrow", "cannot borrow"),
    "inserted negation": TEXT.replace("was founded", "was not founded"),
    "negating prefix": TEXT.replace("private", "unprivate"),
    "contrast": TEXT.replace("private", "public"),
    "order of names": TEXT.replace("Lisbon", "X").replace("Maria Costa", "Lisbon").replace("X", "Maria Costa"),
    "an appended fact": TEXT + " It closes in winter.",
    "an appended number": TEXT + " Tickets cost 12 euros.",
    "a footer that ends with a fact": TEXT + FOOTER + " Tickets cost 12 euros.",
    "another sentence in the middle": TEXT.replace("It shows", "It burned down in 1922. It shows"),
    "a part of it": TEXT[:100],
}
APART = [
    ("revenue in 2019 was 5m", "revenue in 2020 was 6m"),
    ("It costs $5 to enter.", "It costs €5 to enter."),
    ("The sensor reads -5 degrees.", "The sensor reads 5 degrees."),
    ("The value is 5.2 in both cases.", "The value is 52 in both cases."),
    ("The library is written in C++.", "The library is written in C."),
    ("The drug increases mortality in adults.", "The drug decreases mortality in adults."),
    ("Dogs chase cats.", "Cats chase dogs."),
    ("Is it safe?", "It is safe."),
    (
        "If you have a fever or a cough, stay at home and call your doctor. In Australia, ring 1800 020 080.",
        "If you have a fever or a cough, stay at home and call your doctor. In Britain, ring 111.",
    ),
    (
        "People who return from a trip have to stay at home for a fortnight and call the hotline of germany daily.",
        "People who return from a trip have to stay at home for a fortnight and call the hotline of Spain daily.",
    ),
    ("居里夫人出生于华沙。她发现了镭。" * 9, "居里夫人出生于巴黎。她发现了镭。" * 9),
    ("", ""),
    ("!", "?"),
]


@pytest.mark.parametrize("kind", SAME)
def test_a_copy_is_a_duplicate(kind: str) -> None:
    assert is_duplicate(TEXT, SAME[kind])
    assert is_duplicate(SAME[kind], TEXT)


@pytest.mark.parametrize("kind", OTHER)
def test_another_statement_is_not(kind: str) -> None:
    assert not is_duplicate(TEXT, OTHER[kind])
    assert not is_duplicate(OTHER[kind], TEXT)


@pytest.mark.parametrize(("one", "other"), APART)
def test_texts_that_differ_in_a_fact_stay_apart(one: str, other: str) -> None:
    assert not is_duplicate(one, other)


def test_a_thousands_separator_is_no_difference() -> None:
    assert is_duplicate("The town has 12,500 people.", "The town has 12500 people.")


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_relation_is_symmetric(one: str, other: str) -> None:
    assert is_duplicate(one, other) == is_duplicate(other, one)


@given(st.lists(st.sampled_from("alpha beta gamma delta 7 Rome".split()), min_size=1, max_size=40))
def test_layout_never_matters(words: list[str]) -> None:
    assert is_duplicate(" ".join(words), "\n".join(word.upper() for word in words) + " .")
