"""Feedback terms: the formulas worked out by hand, and what holds of every feedback."""

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engram.wings.published.core.expansion import key_terms, term_weights

words = st.sampled_from("abcdefgh")
counted = st.dictionaries(words, st.integers(1, 9).map(float), max_size=6)
feedback = st.lists(counted, max_size=6)
weighed = st.dictionaries(words, st.floats(0.01, 100.0), max_size=8)


def everywhere(terms: Sequence[Mapping[str, float]], passages: int) -> dict[str, int]:
    """Each term in as many passages as there can be."""
    return dict.fromkeys(set().union(*terms), passages)


class TestTermWeights:
    def test_a_worked_example(self) -> None:
        """Two passages of 4 and 2 terms, so L = 6; by reciprocal rank they count 2/3 and 1/3."""
        weights = term_weights([{"a": 3.0, "b": 1.0}, {"a": 1.0, "c": 1.0}], {"a": 5, "b": 2, "c": 1}, 10)
        a = 6 * (2 / 3 * 3 / 4 + 1 / 3 * 1 / 2)
        b = 6 * (2 / 3 * 1 / 4)
        c = 6 * (1 / 3 * 1 / 2)
        assert weights == pytest.approx(
            {
                "a": a * math.log2((1 + 0.5) / 0.5) + math.log2(1 + 0.5),
                "b": b * math.log2((1 + 0.2) / 0.2) + math.log2(1 + 0.2),
                "c": c * math.log2((1 + 0.1) / 0.1) + math.log2(1 + 0.1),
            }
        )

    def test_one_passage_counts_as_published(self) -> None:
        """With nothing to weigh against it, a term's frequency is its own."""
        weights = term_weights([{"a": 3.0, "b": 1.0}], {"a": 2, "b": 2}, 8)
        assert weights["a"] == pytest.approx(3 * math.log2(1.25 / 0.25) + math.log2(1.25))

    @given(feedback, st.integers(1, 100))
    def test_every_term_has_a_weight_and_nothing_else(
        self, frequencies: list[dict[str, float]], passages: int
    ) -> None:
        weights = term_weights(frequencies, everywhere(frequencies, passages), passages)
        assert weights.keys() == set().union(*frequencies)
        assert all(0 < weight < math.inf for weight in weights.values())

    @given(st.integers(1, 50), st.integers(1, 99), st.integers(2, 100))
    def test_a_rarer_term_weighs_more(self, frequency: int, containing: int, passages: int) -> None:
        """Of a term that occurs as often as in chance's commonest case, once in every passage, or oftener."""
        assume(containing < passages)
        terms = [{"a": float(frequency)}]
        rarer, commoner = (term_weights(terms, {"a": n}, passages)["a"] for n in (containing, containing + 1))
        assert rarer > commoner

    @given(feedback, words, st.integers(1, 100))
    def test_a_missing_count_is_one_passage(
        self, frequencies: list[dict[str, float]], term: str, passages: int
    ) -> None:
        counts = everywhere(frequencies, passages) | {term: 1}
        told = term_weights(frequencies, counts, passages)
        counts.pop(term)
        assert term_weights(frequencies, counts, passages) == told

    @given(feedback, st.integers(1, 100))
    def test_passage_without_terms_does_not_change_weights(
        self, frequencies: list[dict[str, float]], passages: int
    ) -> None:
        counts = everywhere(frequencies, passages)
        assert term_weights([{}, *frequencies, {}], counts, passages) == term_weights(frequencies, counts, passages)

    @given(st.integers(1, 9), st.integers(1, 9), st.integers(2, 50))
    def test_length_does_not_speak_for_a_passage(self, short: int, long: int, passages: int) -> None:
        """A passage that says the same many times over gives its terms no larger share."""
        weights = term_weights([{"a": float(short)}, {"b": float(long)}], {}, passages)
        assert weights["a"] > weights["b"]

    def test_an_earlier_passage_counts_for_more(self) -> None:
        weights = term_weights([{"a": 1.0}, {"b": 1.0}, {"c": 1.0}], {}, 10)
        assert weights["a"] > weights["b"] > weights["c"]

    @pytest.mark.parametrize("containing", [0, -1, 4])
    def test_counts_that_cannot_be_are_refused(self, containing: int) -> None:
        with pytest.raises(ValueError, match="at most all passages"):
            term_weights([{"a": 1.0}], {"a": containing}, 3)

    def test_no_passages_give_no_term_weights(self) -> None:
        assert term_weights([], {}, 0) == {}
        assert term_weights([{}], {}, 0) == {}


class TestKeyTerms:
    def test_the_weightiest_in_order(self) -> None:
        assert key_terms({"b": 1.0, "a": 2.0, "d": 0.5, "c": 0.5}, [], 3) == ["a", "b", "c"]

    def test_the_questions_own_take_half_at_most(self) -> None:
        weights = {"a": 9.0, "b": 8.0, "c": 7.0, "x": 2.0, "y": 1.0, "z": 0.5}
        assert key_terms(weights, ["a", "b", "c"], 4) == ["a", "b", "x", "y"]
        assert key_terms(weights, ["a", "b", "c"], 1) == ["x"]

    def test_a_light_term_of_the_question_is_no_key_term(self) -> None:
        assert key_terms({"a": 0.1, "x": 2.0, "y": 1.0}, ["a"], 2) == ["x", "y"]

    def test_without_a_new_term_there_are_none(self) -> None:
        assert key_terms({"a": 2.0, "b": 1.0}, ["a", "b", "c"], 4) == []
        assert key_terms({}, ["a"], 4) == []

    @given(weighed, st.sets(words), st.integers(1, 10))
    def test_never_only_the_questions_own(self, weights: dict[str, float], asked: set[str], limit: int) -> None:
        chosen = key_terms(weights, asked, limit)
        assert len(chosen) == len(set(chosen)) <= limit
        assert set(chosen) <= weights.keys()
        assert bool(set(chosen) - asked) == bool(weights.keys() - asked)
        assert len(set(chosen) & asked) <= limit // 2
        assert [weights[term] for term in chosen] == sorted((weights[term] for term in chosen), reverse=True)
        left_out = [weights[term] for term in weights.keys() - asked - set(chosen)]
        new = [weights[term] for term in chosen if term not in asked]
        assert not left_out or max(left_out) <= min(new)
        assert not left_out or len(chosen) == limit  # places are not left empty

    @given(weighed, st.sets(words), st.integers(1, 10))
    def test_the_order_of_the_terms_does_not_matter(
        self, weights: dict[str, float], asked: set[str], limit: int
    ) -> None:
        other = dict(reversed(weights.items()))
        assert key_terms(other, asked, limit) == key_terms(weights, asked, limit)
