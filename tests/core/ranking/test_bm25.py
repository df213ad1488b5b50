"""BM25's weights of terms: worked examples, and what holds for every question."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from engram.core.ranking.bm25 import expand_query, inverse_document_frequency
from tests.support.lexical import reference, saturation

tokens = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=10)


def test_idf_of_a_rare_and_of_a_common_term() -> None:
    assert_allclose(
        inverse_document_frequency(10, [1, 10]),
        [math.log(1 + (10 - 1 + 0.5) / (1 + 0.5)), math.log(1 + (10 - 10 + 0.5) / (10 + 0.5))],
    )


@given(st.integers(1, 10**6))
def test_the_more_passages_hold_a_term_the_less_it_tells(passages: int) -> None:
    idf = inverse_document_frequency(passages, np.unique(np.linspace(1, passages, 9).astype(int)))
    assert (idf > 0).all()
    assert (np.diff(idf) < 0).all()


@pytest.mark.parametrize("containing", [-1, 4])
def test_a_term_cannot_be_in_more_passages_than_there_are(containing: int) -> None:
    with pytest.raises(ValueError, match="all passages"):
        inverse_document_frequency(3, containing)


class TestExpandedQuestions:
    def test_all_units_together_weigh_as_much_as_the_question(self) -> None:
        # The question weighs 3, so either unit 1.5: one has it on one term, the other on two, 2 : 1.
        weights = expand_query({"a": 2, "b": 1}, [{"c": 7}, {"a": 2, "d": 1}])
        assert weights == pytest.approx({"a": 2 + 1.5 * 2 / 3, "b": 1, "c": 1.5, "d": 1.5 / 3})

    def test_without_units_the_question_is_as_it_was(self) -> None:
        assert expand_query({"a": 2, "b": 1}, []) == {"a": 2, "b": 1}
        assert expand_query({"a": 2}, [{}]) == {"a": 2}
        assert expand_query({}, []) == {}

    def test_a_question_without_terms_has_those_of_its_units(self) -> None:
        assert expand_query({}, [{"a": 1}, {}, {"b": 3, "c": 1}]) == pytest.approx(
            {"a": 0.5, "b": 0.375, "c": 0.125}
        )

    @given(
        question=tokens.filter(bool), units=st.lists(tokens.filter(bool), min_size=1, max_size=5), data=st.data()
    )
    def test_neither_number_nor_length_nor_order_of_units_changes_their_weight(
        self, question: list[str], units: list[list[str]], data: st.DataObject
    ) -> None:
        asked, counted = Counter(question), [Counter(unit) for unit in units]
        weights = expand_query(asked, counted)
        assert sum(weights.values()) == pytest.approx(2 * len(question))
        shuffled = data.draw(st.permutations(counted))
        assert expand_query(asked, shuffled) == pytest.approx(weights)
        doubled = [Counter(unit * 2) for unit in units]
        assert expand_query(asked, doubled) == pytest.approx(weights)


def test_saturation_of_a_passage_of_mean_and_of_twice_the_length() -> None:
    assert_allclose(saturation(3, 8, 8.0), 3 / (3 + 1.5))
    assert_allclose(saturation(3, 16, 8.0), 3 / (3 + 1.5 * (1 - 0.75 + 0.75 * 2)))


@given(corpus=st.lists(tokens, min_size=1, max_size=8), question=tokens)
def test_the_sum_over_terms_is_the_score_of_bm25s(corpus: list[list[str]], question: list[str]) -> None:
    named = {str(at): text for at, text in enumerate(corpus)}
    mean = sum(map(len, corpus)) / len(corpus)
    scores = {
        passage: sum(
            weight
            * float(inverse_document_frequency(len(corpus), sum(term in other for other in corpus)))
            * float(saturation(text.count(term), len(text), mean))
            for term, weight in Counter(question).items()
        )
        for passage, text in named.items()
        if set(text) & set(question)
    }
    assert reference(named, question) == pytest.approx(scores, rel=1e-5)
