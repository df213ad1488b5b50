"""Ranking weights as a belief: what one verdict says, and that verdicts add up in any order."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from engram.core.learning.logged_verdict import LoggedVerdict
from engram.core.ranking import weight_beliefs
from engram.core.ranking.weight_beliefs import (
    SPARED_RIVALS,
    CandidateComparison,
    Floats,
    WeightBelief,
    WeightEvidence,
    WeightObservation,
    build_empty_evidence,
    observe_all,
    posterior,
)

SIZE = 4


def prior_of(seed: int, size: int = SIZE) -> WeightBelief:
    """Some belief."""
    draw = np.random.default_rng(seed)
    root = draw.normal(size=(size, size))
    return WeightBelief(draw.normal(size=size), root @ root.T + np.eye(size))


def episode(
    seed: int, count: int, supported: int, size: int = SIZE
) -> tuple[Floats, "np.ndarray[tuple[int], np.dtype[np.bool_]]"]:
    """Candidates' features, and which of them are supported."""
    draw = np.random.default_rng(seed)
    chosen = np.zeros(count, dtype=bool)
    chosen[draw.choice(count, supported, replace=False)] = True
    return draw.normal(size=(count, size)), chosen


def observe(
    features: Floats, supported: Any, prior: WeightBelief, noise: float, examined: Floats | None = None
) -> WeightObservation | None:
    """What one verdict says."""
    return weight_beliefs.observe(CandidateComparison(features, supported, noise, examined), prior)


def observe_verdict(*episode: Any, prior: WeightBelief, noise: float, **more: Any) -> WeightObservation | None:
    """What one verdict says of the ranking of an episode."""
    comparison = weight_beliefs.compare_candidates(*episode, prior=prior, noise=noise, **more)
    return None if comparison is None else weight_beliefs.observe(comparison, prior)


def softmax(scores: Floats) -> Floats:
    shifted: Floats = np.exp(scores - scores.max())
    return shifted / shifted.sum()


def draw_observation(seed: int, prior: WeightBelief, noise: float = 1.0) -> WeightObservation:
    """What an episode with two supported of ten candidates says."""
    observation = observe(*episode(seed, 10, 2), prior, noise)
    assert observation is not None
    return observation


def list_differences(features: Floats, supported: Floats, prior: WeightBelief) -> list[Floats]:
    """Each supported row above the rivals that count, written out."""
    rivals = sorted(features[~supported], key=lambda row: -float(row @ prior.mean))[SPARED_RIVALS:]
    return [np.array([row, *rivals]) for row in features[supported]]


def log_likelihood(features: Floats, supported: Floats, prior: WeightBelief) -> Callable[[Floats], float]:
    """Of weights: mean over the supported of the log-probability that each comes before its rivals."""
    rows = list_differences(features, supported, prior)

    def value(weights: Floats) -> float:
        return float(np.mean([scores[0] - np.log(np.exp(scores).sum()) for scores in (r @ weights for r in rows)]))

    return value


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [1.0, 0.25])
def test_an_observation_is_gradient_and_curvature_of_the_log_likelihood(seed: int, noise: float) -> None:
    prior = prior_of(seed)
    features, supported = episode(seed, 12, 3)
    value = log_likelihood(features, supported, prior)
    axes, step = np.eye(SIZE), 1e-4

    def slope(weights: Floats) -> Floats:
        return np.array([(value(weights + step * a) - value(weights - step * a)) / (2 * step) for a in axes])

    curvature = np.array([slope(prior.mean + step * a) - slope(prior.mean - step * a) for a in axes]) / (2 * step)
    observation = observe(features, supported, prior, noise)

    assert observation is not None
    assert_allclose(observation.evidence.information, slope(prior.mean) / noise, atol=1e-6)
    assert_allclose(observation.evidence.precision, -curvature / noise, atol=1e-5)


def test_surprise_is_the_probability_of_a_rival() -> None:
    prior = WeightBelief(np.array([1.0]), np.eye(1))
    rivals = [[5.0]] * SPARED_RIVALS + [[np.log(2.0)]]
    observation = observe(np.array([[0.0], *rivals]), np.array([True] + [False] * (SPARED_RIVALS + 1)), prior, 1.0)

    assert observation is not None
    assert observation.surprise == pytest.approx(2 / 3)
    assert_allclose(observation.evidence.information, [-2 / 3 * np.log(2.0)])
    assert_allclose(observation.evidence.precision, [[1 / 3 * 2 / 3 * np.log(2.0) ** 2]])


class TestSparedRivals:
    """The best rivals may come first: a supported passage has to come among the first few."""

    def test_the_best_rivals_say_nothing_wherever_they_stand(self) -> None:
        prior = WeightBelief(np.array([1.0, 0.0]), np.eye(2))
        supported = [[0.0, 0.0]]
        others = [[-1.0, 0.5], [-2.0, -0.5]]
        outcomes = [
            observe(np.array(rows), np.array([row in supported for row in rows]), prior, 1.0)
            for ahead in ([[1.0, 3.0], [2.0, -7.0], [3.0, 9.0]], [[9.0, 0.1], [8.0, 0.2], [7.0, 0.3]])
            for rows in (ahead + supported + others, others + supported + ahead)
        ]

        first, *rest = outcomes
        assert first is not None
        for outcome in rest:
            assert outcome is not None
            assert_allclose(outcome.evidence.information, first.evidence.information)
            assert_allclose(outcome.evidence.precision, first.evidence.precision)

    @pytest.mark.parametrize("count", [SPARED_RIVALS + 1, 100])
    def test_equal_rivals_are_spared_in_the_given_order(self, count: int) -> None:
        prior = WeightBelief(np.array([1.0, 0.0]), np.eye(2))
        rows = np.array([[0.0, 0.0], *([0.5, float(at)] for at in range(count))])
        observation = observe(rows, np.arange(len(rows)) == 0, prior, 1.0)

        assert observation is not None
        kept = rows[1 + SPARED_RIVALS :]
        share = softmax(np.array([0.0] + [0.5] * len(kept)))[1:]
        assert_allclose(observation.evidence.information, -share @ kept)

    @pytest.mark.parametrize("rivals", range(SPARED_RIVALS + 1))
    def test_too_few_rivals_give_no_observation(self, rivals: int) -> None:
        features, supported = episode(1, rivals + 2, 2)

        assert observe(features, supported, prior_of(1), 1.0) is None
        more, named = episode(1, SPARED_RIVALS + 3, 2)
        assert observe(more, named, prior_of(1), 1.0) is not None

    def test_verdict_without_support_is_no_observation(self) -> None:
        assert observe(*episode(1, 9, 0), prior_of(1), 1.0) is None
        assert observe(np.zeros((0, SIZE)), np.zeros(0, dtype=bool), prior_of(1), 1.0) is None


class TestNoise:
    def test_evidence_is_divided_by_it(self) -> None:
        sure, unsure = draw_observation(3, prior_of(3), 0.5), draw_observation(3, prior_of(3), 2.0)

        assert_allclose(unsure.evidence.information * 4, sure.evidence.information)
        assert_allclose(unsure.evidence.precision * 4, sure.evidence.precision)
        assert unsure.surprise == sure.surprise

    @pytest.mark.parametrize("noise", [0.0, -1.0, float("nan")])
    def test_it_must_be_positive(self, noise: float) -> None:
        with pytest.raises(ValueError, match="noise"):
            observe(*episode(1, 10, 2), prior_of(1), noise)


@given(st.integers(0, 10**6), st.integers(0, 12), st.integers(0, 12), st.floats(0.1, 10.0))
def test_evidence_is_a_bounded_covariance(seed: int, count: int, supported: int, noise: float) -> None:
    prior = prior_of(seed)
    observation = observe(*episode(seed, count, min(supported, count)), prior, noise)
    if observation is None:
        assert count - supported <= SPARED_RIVALS or not supported
        return
    precision = observation.evidence.precision

    assert_allclose(precision, precision.T, atol=1e-12)
    assert np.linalg.eigvalsh(precision).min() >= -1e-12
    assert 0 <= observation.surprise <= 1


def test_a_verdict_counts_the_same_however_many_passages_it_supports() -> None:
    prior = WeightBelief(np.array([1.0]), np.eye(1))
    rivals = [[9.0]] * SPARED_RIVALS + [[0.5]]
    one, four = (
        observe(np.array([[0.0]] * count + rivals), np.arange(count + len(rivals)) < count, prior, 1.0)
        for count in (1, 4)
    )

    assert one is not None
    assert four is not None
    assert_allclose(four.evidence.information, one.evidence.information)
    assert_allclose(four.evidence.precision, one.evidence.precision)
    assert four.surprise == pytest.approx(one.surprise)


class TestPosterior:
    def test_without_evidence_it_is_the_prior(self) -> None:
        prior = prior_of(5)
        after = posterior(prior, build_empty_evidence(SIZE))

        assert_array_equal(after.mean, prior.mean)
        assert_array_equal(after.precision, prior.precision)

    def test_mean_solves_the_normal_equations(self) -> None:
        prior, evidence = prior_of(6), draw_observation(6, prior_of(6)).evidence
        after = posterior(prior, evidence)

        assert_allclose(after.precision, prior.precision + evidence.precision)
        assert_allclose(after.precision @ (after.mean - prior.mean), evidence.information, atol=1e-12)


def total(observations: list[WeightObservation]) -> WeightEvidence:
    evidence = build_empty_evidence(SIZE)
    for observation in observations:
        evidence = evidence + observation.evidence
    return evidence


@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=20), st.randoms(use_true_random=False), st.integers(0, 9)
)
def test_verdicts_add_up_in_any_order_and_one_can_be_taken_back(
    seeds: list[int], draw: "np.random.Generator", seed: int
) -> None:
    prior = prior_of(seed)
    observations = [draw_observation(each, prior) for each in seeds]
    shuffled = list(observations)
    draw.shuffle(shuffled)

    whole = posterior(prior, total(observations))
    other = posterior(prior, total(shuffled))
    assert_allclose(other.mean, whole.mean, rtol=0, atol=1e-12 * max(1.0, float(np.abs(whole.mean).max())))
    assert_allclose(other.precision, whole.precision, rtol=1e-12, atol=1e-12)

    taken = observations[0].evidence
    everything = total(observations)
    without = WeightEvidence(everything.information - taken.information, everything.precision - taken.precision)
    never = posterior(prior, total(observations[1:]))
    assert_allclose(posterior(prior, without).mean, never.mean, rtol=0, atol=1e-11)


@pytest.mark.parametrize("score", [-1e4, 1e4])
def test_scores_may_be_as_large_as_they_like(score: float) -> None:
    """A supported one that is sure to come first says nothing, and one that is sure not to all that it can."""
    rows = np.array([[score], *[[0.0]] * (SPARED_RIVALS + 2)])
    observation = observe(rows, np.arange(len(rows)) == 0, WeightBelief(np.ones(1), np.eye(1)), 1.0)
    assert observation is not None
    sure = score > 0
    assert_allclose(observation.evidence.information, [0.0 if sure else score], atol=1e-200)
    assert_allclose(observation.evidence.precision, [[0.0]], atol=1e-200)
    assert observation.surprise == pytest.approx(0.0 if sure else 1.0)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(1, 40)), min_size=2, max_size=40), st.integers(0, 9))
def test_batched_observations_equal_single_ones(episodes: list[tuple[int, int]], seed: int) -> None:
    size, prior = 29, prior_of(seed, 29)
    comparisons = [
        CandidateComparison(
            *episode(each, count, min(2, count), size), 0.5, np.linspace(0.1, 1.0, count) if each % 2 else None
        )
        for each, count in episodes
    ]
    together = observe_all(comparisons, prior)
    for one, beside in zip(comparisons, together, strict=True):
        alone = weight_beliefs.observe(one, prior)
        assert (alone is None) == (beside is None)
        if alone is not None and beside is not None:
            assert_array_equal(alone.evidence.information, beside.evidence.information)
            assert_array_equal(alone.evidence.precision, beside.evidence.precision)
            assert alone.surprise == beside.surprise


class TestVerdicts:
    """Passages 0 to 9 are ranked, with features of their own."""

    ranked = range(10)
    features = episode(3, 10, 1)[0].astype(np.float32)

    def observe_logged(self, named: list[tuple[int, int]], **verdict: Any) -> WeightObservation | None:
        return observe_verdict(
            self.ranked, self.features, named, LoggedVerdict(**verdict), prior=prior_of(3), noise=1.0
        )

    def observe_expected(self, spoken: list[int], supported: list[int]) -> WeightObservation:
        chosen = np.isin(spoken, supported)
        observation = observe(self.features[spoken].astype(np.float64), chosen, prior_of(3), 1.0)
        assert observation is not None
        return observation

    def test_unnamed_passages_are_rivals(self) -> None:
        observation = self.observe_logged([(2, 1), (5, 0)], passages=(7,))
        assert observation is not None
        wanted = self.observe_expected(list(self.ranked), [2, 7])
        assert_array_equal(observation.evidence.information, wanted.evidence.information)

    def test_a_partial_verdict_speaks_of_what_it_names(self) -> None:
        observation = self.observe_logged([(2, 1), *((passage, 0) for passage in (0, 1, 5, 8))], partial=True)
        assert observation is not None
        wanted = self.observe_expected([0, 1, 2, 5, 8], [2])
        assert_array_equal(observation.evidence.information, wanted.evidence.information)

    def test_no_comparison_without_a_supported_ranked_passage(self) -> None:
        assert self.observe_logged([(2, 0), (99, 1)]) is None

    def test_features_of_another_size_give_no_observation(self) -> None:
        assert (
            observe_verdict(
                self.ranked, self.features[:, :3], [(2, 1)], LoggedVerdict(), prior=prior_of(3), noise=1.0
            )
            is None
        )


class TestExamination:
    def test_looked_at_for_certain_is_the_same_to_the_bit(self) -> None:
        prior, (features, supported) = prior_of(1), episode(1, 10, 2)
        plain, certain = (
            observe(features, supported, prior, 0.5),
            observe(features, supported, prior, 0.5, np.ones(10)),
        )
        assert plain is not None
        assert certain is not None
        assert_array_equal(plain.evidence.information, certain.evidence.information)
        assert_array_equal(plain.evidence.precision, certain.evidence.precision)

    def test_a_rival_weighs_as_often_as_it_was_looked_at(self) -> None:
        """Half a rival is what two equal ones at a half come to: one."""
        prior, (features, _) = prior_of(2), episode(2, 9, 1)
        supported = np.zeros(9, dtype=bool)
        supported[np.argmax(features @ prior.mean)] = True
        last = int(np.argmin(features @ prior.mean))
        twice = np.vstack([features, features[last]])
        looked = np.ones(10)
        looked[[last, 9]] = 0.5
        one, two = (
            observe(features, supported, prior, 1.0),
            observe(twice, np.append(supported, False), prior, 1.0, looked),
        )
        assert one is not None
        assert two is not None
        assert_allclose(two.evidence.information, one.evidence.information)
        assert_allclose(two.evidence.precision, one.evidence.precision)
        assert two.surprise == pytest.approx(one.surprise)

    @pytest.mark.parametrize("probability", [0.0, -1.0, 1.5, np.nan])
    def test_a_probability_out_of_its_range_is_refused(self, probability: float) -> None:
        features, supported = episode(4, 6, 1)
        with pytest.raises(ValueError, match="examination probability"):
            observe(features, supported, prior_of(4), 1.0, np.full(6, probability))
