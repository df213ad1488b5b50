"""Which texts are near-duplicates. The cases were written before the rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.ranking.duplicates import (
    FEWEST_WORDS,
    find_similar_pairs,
    is_duplicate,
    merge_duplicates,
    pack_terms,
    stand_ins,
)
from engram.core.ranking.passage_scores import HopReach

TEXT = (
    "Opening hours. The museum in Lisbon was founded in 1905 by Maria Costa. It shows 240 paintings and a broad "
    "set of drawings from private collections, and visitors can borrow an audio guide at the entrance."
)
FOOTER = " © 2021 Museum Press Ltd. All rights reserved."
SAME_TEXTS = {
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
OTHER_TEXTS = {
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
DIFFERENT_TEXTS = [
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


@pytest.mark.parametrize("kind", SAME_TEXTS)
def test_a_copy_is_a_duplicate(kind: str) -> None:
    assert is_duplicate(TEXT, SAME_TEXTS[kind])
    assert is_duplicate(SAME_TEXTS[kind], TEXT)


@pytest.mark.parametrize("kind", OTHER_TEXTS)
def test_another_statement_is_not(kind: str) -> None:
    assert not is_duplicate(TEXT, OTHER_TEXTS[kind])
    assert not is_duplicate(OTHER_TEXTS[kind], TEXT)


@pytest.mark.parametrize(("one", "other"), DIFFERENT_TEXTS)
def test_texts_that_differ_in_a_fact_stay_apart(one: str, other: str) -> None:
    assert not is_duplicate(one, other)


def test_a_thousands_separator_is_no_difference() -> None:
    assert is_duplicate("The town has 12,500 people.", "The town has 12500 people.")


@pytest.mark.parametrize(("words", "is_copy"), [(FEWEST_WORDS, True), (FEWEST_WORDS - 1, False)])
def test_every_word_of_a_short_text_counts(words: int, is_copy: bool) -> None:
    text = " ".join(TEXT.lower().split()[-words:])
    assert len(text.split()) == words
    assert is_duplicate(text, text.replace("entrance", "entrence")) is is_copy


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_relation_is_symmetric(one: str, other: str) -> None:
    assert is_duplicate(one, other) == is_duplicate(other, one)


@given(st.lists(st.sampled_from("alpha beta gamma delta 7 Rome".split()), min_size=1, max_size=40))
def test_layout_never_matters(words: list[str]) -> None:
    assert is_duplicate(" ".join(words), "\n".join(word.upper() for word in words) + " .")


EMPTY = np.zeros(0, dtype=np.int64)


def rows(held: dict[int, list[int]]) -> tuple[np.ndarray, np.ndarray]:
    pairs = [(passage, term) for passage, terms in held.items() for term in terms]
    return tuple(np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True)) or (EMPTY, EMPTY)


def test_passages_that_share_half_of_their_terms_are_compared() -> None:
    held = {5: [1, 2, 3, 4], 3: [1, 2, 3, 9], 8: [1, 20, 21, 22], 9: [1, 2, 3, 4]}
    # 3 and 5 share three of five terms; 8 shares one of seven.
    assert find_similar_pairs(pack_terms(*rows(held))) == [(3, 5), (3, 9), (5, 9)]


def test_passages_without_terms_are_no_duplicates() -> None:
    assert find_similar_pairs(pack_terms(*rows({}))) == []


def test_the_better_passage_stands_for_its_copies() -> None:
    texts = {1: TEXT + FOOTER, 2: TEXT, 3: OTHER_TEXTS["year"], 4: TEXT.upper()}
    pairs = [(one, other) for one in texts for other in texts if one < other]
    assert stand_ins([4, 3, 2, 1], pairs, texts) == {2: 4, 1: 4}
    assert stand_ins([3, 1, 2, 4], pairs, texts) == {2: 1, 4: 1}


def test_a_passage_that_another_stands_for_stands_for_none() -> None:
    words = [f"{first}{second}ing" for first in "bcdfg" for second in "aeioulmnrs"]
    texts = {
        0: " ".join(words),
        1: " ".join([*words[:20], "plain", *words[21:]]),
        2: " ".join([*words[:20], "plain", *words[21:30], "simple", *words[31:]]),
    }
    assert is_duplicate(texts[1], texts[2])
    assert not is_duplicate(texts[0], texts[2])
    assert stand_ins([0, 1, 2], [(0, 1), (1, 2), (0, 2)], texts) == {1: 0}


def test_pairs_of_passages_that_are_not_ranked_or_gone_are_left_alone() -> None:
    assert stand_ins([1], [(1, 2)], {1: TEXT, 2: TEXT}) == {}
    assert stand_ins([1, 2], [(1, 2)], {1: TEXT}) == {}


def test_a_copy_moves_no_passage_down() -> None:
    reach = HopReach(
        passage_ids=np.array([7, 5, 6, 7, 5]),
        semantic=np.array([0.9, 0.9, 0.8, 0.5, 0.4]),
        scores=np.array([5.0, 4.0, 3.0, 2.0, 1.0]),
        title_activation={7: 0.25, 5: 0.5, 6: 1.0},
    )
    single = merge_duplicates(reach, {7: 5})
    # The best sentence is in both; the others differ.
    assert single.passage_ids.tolist() == [5, 6, 5, 5]
    assert single.semantic.tolist() == [0.9, 0.8, 0.5, 0.4]
    assert single.scores.tolist() == [5.0, 3.0, 2.0, 1.0]
    assert single.title_activation == {5: 0.5, 6: 1.0}
    assert merge_duplicates(reach, {}) is reach
