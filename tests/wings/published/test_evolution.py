"""Keys that evolve: attribution, composition and saturation, by example and for every key and expansion."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from engram.core.passage_keys.query_vector import expand_query
from engram.wings.published.core.evolution import (
    KeyRules,
    Saturation,
    attribution,
    compose,
    compose_terms,
    compute_displacement_bound,
    gains,
)

Floats = NDArray[np.float64]
DIMENSION = 6
strengths = st.floats(0.05, 0.95)
vectors = arrays(np.float64, DIMENSION, elements=st.floats(-1, 1)).filter(
    lambda row: float(np.linalg.norm(row)) > 0.1
)


def unit(row: Floats) -> Floats:
    return row / np.linalg.norm(row)


units = vectors.map(unit)


def draw_stack(least: int = 1, most: int = 5) -> st.SearchStrategy[Floats]:
    return st.lists(units, min_size=least, max_size=most).map(np.stack)


class TestGains:
    @given(units, draw_stack(), draw_stack(), strengths)
    def test_a_gain_is_the_cosine_with_the_composed_key_less_that_with_the_key(
        self, query: Floats, bases: Floats, added: Floats, strength: float
    ) -> None:
        gain = gains(query, bases, added, strength)
        assert gain.shape == (len(bases), len(added))
        for row, base in enumerate(bases):
            for column, expansion in enumerate(added):
                expected = query @ unit(base + strength * expansion) - query @ base
                assert gain[row, column] == pytest.approx(expected, abs=1e-6)

    @pytest.mark.parametrize("dimension", [2, 7, 384, 1_024])
    def test_a_gain_does_not_depend_on_what_it_is_taken_with(self, dimension: int) -> None:
        draw = np.random.default_rng(dimension)
        query, *rest = (unit(row).astype(np.float32) for row in draw.normal(size=(20, dimension)))
        bases, added = np.stack(rest[:7]), np.stack(rest[7:])
        whole = gains(query, bases, added, 0.7)
        for row, base in enumerate(bases):
            assert_array_equal(gains(query, base[None], added, 0.7)[0], whole[row])
            for column, expansion in enumerate(added):
                assert gains(query, base[None], expansion[None], 0.7)[0, 0] == whole[row, column]

    def test_the_question_itself_helps_every_key_but_its_own(self) -> None:
        query = np.eye(DIMENSION)[0]
        bases = np.stack([query, np.eye(DIMENSION)[1]])
        gain = gains(query, bases, query[None, :], 0.5)
        assert gain[0, 0] == pytest.approx(0.0)
        assert gain[1, 0] > 0.4


class TestAttribution:
    @given(arrays(np.float64, (3, 4), elements=st.floats(-1, 1)))
    def test_weights_of_what_helps_add_up_to_one_and_the_rest_gets_none(self, gain: Floats) -> None:
        weight = attribution(gain)
        assert np.all(weight[gain <= 0] == 0)
        assert np.all(weight[gain > 0] > 0)
        assert_allclose(weight.sum(axis=1), (gain > 0).any(axis=1).astype(float))

    @given(arrays(np.float64, (1, 4), elements=st.floats(-1, 1)))
    def test_more_gain_never_weighs_less(self, gain: Floats) -> None:
        weight = attribution(gain)[0]
        order = np.argsort(gain[0], kind="stable")
        assert np.all(np.diff(weight[order]) >= 0)

    def test_attribution_is_the_softmax_over_positive_gains(self) -> None:
        weight = attribution(np.array([[0.2, 0.1, -0.3]]))
        both = np.exp(0.2) + np.exp(0.1)
        assert_allclose(weight, [[np.exp(0.2) / both, np.exp(0.1) / both, 0.0]])


class TestCompose:
    @given(units, draw_stack(), strengths, st.data())
    def test_a_key_keeps_unit_length_and_stays_within_the_bound(
        self, base: Floats, added: Floats, strength: float, data: st.DataObject
    ) -> None:
        scores = np.array(data.draw(st.lists(st.floats(0.01, 5), min_size=len(added), max_size=len(added))))
        key = compose(base, added, scores, strength)
        assert np.linalg.norm(key) == pytest.approx(1.0, abs=1e-5)
        assert np.linalg.norm(key - base) <= compute_displacement_bound(strength) + 1e-5

    def test_the_bound_is_reached(self) -> None:
        # The key turns most where base + λ·unit is at right angles to the unit.
        strength = 0.6
        base = np.eye(DIMENSION)[0]
        turned = np.array([-strength, np.sqrt(1 - strength**2), 0, 0, 0, 0])
        key = compose(base, turned[None, :], np.ones(1), strength)
        assert np.linalg.norm(key - base) == pytest.approx(compute_displacement_bound(strength), abs=1e-6)

    @given(units, draw_stack(2, 5), strengths, st.randoms(use_true_random=False))
    def test_the_order_of_units_does_not_matter(self, base: Floats, added: Floats, strength: float, random) -> None:  # type: ignore[no-untyped-def]
        scores = np.linspace(1, 2, len(added))
        order = list(range(len(added)))
        random.shuffle(order)
        one, other = compose(base, added, scores, strength), compose(base, added[order], scores[order], strength)
        if np.linalg.norm(scores @ added) > 1e-3:
            assert_allclose(one, other, atol=1e-4)

    def test_units_that_cancel_out_leave_the_base(self) -> None:
        base, one = np.eye(DIMENSION)[:2]
        assert_allclose(compose(base, np.stack([one, -one]), np.ones(2), 0.5), base)

    def test_helpful_unit_moves_the_key_towards_the_question(self) -> None:
        random = np.random.default_rng(3)
        query, base, expansion = (unit(row) for row in random.normal(size=(3, DIMENSION)))
        if gains(query, base[None], expansion[None], 0.7)[0, 0] <= 0:
            expansion = query
        key = compose(base, expansion[None], np.ones(1), 0.7)
        assert query @ key > query @ base


class TestTerms:
    @given(
        st.floats(1, 500),
        st.lists(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 5), min_size=1), min_size=1, max_size=4),
        st.floats(0.01, 2),
    )
    def test_increments_add_up_to_their_share_of_the_passage(
        self, length: float, frequencies: list[dict[str, float]], strength: float
    ) -> None:
        added = compose_terms(length, frequencies, [1.0] * len(frequencies), strength)
        assert sum(added.values()) == pytest.approx(strength * length)
        assert added.keys() == {term for unit in frequencies for term in unit}

    def test_a_unit_counts_with_its_score_not_with_its_length(self) -> None:
        added = compose_terms(10, [{"a": 1}, {"b": 1, "c": 3}], [3.0, 1.0], 0.4)
        assert added == {"a": pytest.approx(3.0), "b": pytest.approx(0.25), "c": pytest.approx(0.75)}

    def test_unit_without_terms_adds_no_terms(self) -> None:
        assert compose_terms(10, [{}], [1.0], 0.4) == {}


class TestSaturation:
    def test_batches_that_bring_nothing_better_are_counted(self) -> None:
        state = Saturation()
        for gain, expected in ((0.3, 0), (0.28, 0), (0.27, 1), (0.1, 2), (0.4, 0), (0.2, 1)):
            state = state.update(gain, margin=0.1)
            assert state.stale == expected
        assert state.best == 0.4

    def test_a_first_batch_is_never_stale(self) -> None:
        assert Saturation().update(0.0, 0.1) == Saturation(0.0, 0)


def test_an_expanded_query_lies_between_the_question_and_its_units() -> None:
    query, one, other = np.eye(DIMENSION)[:3]
    assert_allclose(expand_query(query, np.stack([one, other])), unit(query + (one + other) / 2), atol=1e-6)


@pytest.mark.parametrize(
    "wrong",
    [{"strength": 0.0}, {"strength": 1.0}, {"term_strength": -0.1}, {"units": 0}, {"units": 5, "capacity": 4}],
)
def test_rules_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    values = {"strength": 0.5, "term_strength": 0.2, "units": 2, "capacity": 8} | wrong
    with pytest.raises(ValueError, match="must"):
        KeyRules(**values)  # type: ignore[arg-type]
