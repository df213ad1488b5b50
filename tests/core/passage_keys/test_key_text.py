"""Key building: what of a passage its keys are made of."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.passage_keys.key_text import KEYWORDS, LEADING_WORDS, join_leading, keywords

words = st.lists(st.text("abcdefghij", min_size=2, max_size=12), max_size=60)


def test_leading_sentences_in_order() -> None:
    assert join_leading(["One is.", "Two is.", "Three is."], 2) == "One is. Two is."
    assert join_leading(["One is."], 3) == "One is."
    assert join_leading([], 3) == ""


def test_a_sentence_without_an_end_is_cut() -> None:
    assert join_leading(["word " * 1000], 3).split() == ["word"] * LEADING_WORDS


def test_the_weightiest_terms_are_kept_in_reading_order() -> None:
    """Weight is (frequency + 2 in the title) x length."""
    fillers = [f"filler{chr(97 + n)}xxx" for n in range(KEYWORDS - 2)]  # 1 x 10
    terms = ["ab", "titled", *fillers, "repeated", "lonely", "repeated", "ab", "ab"]
    # titled 3 x 6 = 18, repeated 2 x 8 = 16; ab 3 x 2 = 6 and lonely 1 x 6 = 6 stay behind the fillers' 10.
    assert keywords(terms, {"titled", "absent"}) == ["titled", *fillers, "repeated"]


@pytest.mark.parametrize("count", [KEYWORDS, KEYWORDS + 1, 3 * KEYWORDS])
def test_earlier_terms_win_ties(count: int) -> None:
    terms = [f"term{n:02}" for n in range(count)]
    random.Random(1).shuffle(terms)
    assert keywords(terms, ()) == terms[:KEYWORDS]


@given(words)
def test_keywords_come_once_and_no_more_than_exist(terms: list[str]) -> None:
    found = keywords(terms, set(terms[:2]))
    assert len(found) == len(set(found)) == min(KEYWORDS, len(set(terms)))
    assert found == sorted(found, key=terms.index)
