"""Whether an answer is enough: features of a ranking, what verdicts say of it, and what they add."""

import itertools
import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from engram.core.learning.logged_verdict import LoggedVerdict
from engram.core.ranking import sufficiency
from engram.core.ranking.corpus_kind import CorpusKind
from engram.core.ranking.sufficiency import (
    ANSWER_FEATURES,
    VERDICTS_FOR_HALF_WEIGHT,
    Chain,
    build_counted_observation,
    build_observation,
    compute_learned_mean,
    compute_word_coverage,
    features,
    label_answer,
    label_evidence,
    probability,
)
from engram.core.ranking.weight_beliefs import (
    WeightBelief,
    WeightEvidence,
    build_empty_evidence,
    posterior,
    sigmoid,
)
from engram.providers.ranking_prior import load_priors

SIZE = len(ANSWER_FEATURES)
EXPECTED = np.zeros((len(sufficiency.PATTERNED), SIZE))
FLAT = WeightBelief(np.zeros(SIZE), np.eye(SIZE))


def chain(
    size: int,
    *sides: set[int],
    about: frozenset[int] | set[int] = frozenset(),
    through: int | None = 0,
    compared: bool = False,
) -> Chain:
    """Each side by the places, from 1, of the candidates that are titled after something that it names."""
    places = range(1, size + 1)
    return Chain(
        through,
        compared,
        np.array([place in about for place in places]),
        np.array([[place in side for place in places] for side in sides], dtype=bool).reshape(len(sides), size),
    )


def build_named_features(
    scores: list[float],
    shared: list[float] | None = None,
    share: float = 0.5,
    said: Chain | None = None,
    *,
    similarity: list[float] | None = None,
    expected: np.ndarray = EXPECTED,
    general: bool = False,
) -> dict[str, float]:
    size = len(scores)
    values = features(
        np.array(scores),
        np.array(similarity or [0.0] * size),
        np.array(shared or [0.0] * size),
        share,
        said or chain(size),
        expected=expected,
        general=general,
    )
    return dict(zip(ANSWER_FEATURES, values.tolist(), strict=True))


class TestFeatures:
    def test_margins_are_between_places(self) -> None:
        found = build_named_features([9.0, 7.0, 4.0, 3.5, 3.0, 1.0, 0.0])
        assert (found["margin_2_3"], found["margin_3_5"], found["margin_5_6"]) == (3.0, 1.0, 2.0)
        assert (found["bias"], found["covered"]) == (1.0, 0.5)

    def test_the_tenth_stands_for_passages_on_the_subject(self) -> None:
        scores = [float(20 - place) for place in range(12)]
        similarity = [0.1, 0.5, *[0.2] * 7, 0.15, 0.7, 0.3]
        found = build_named_features(scores, similarity=similarity)
        assert found["margin_1_10"] == 9.0
        # The tenth highest of twelve is the third lowest: 0.2.
        assert found["nearness_1_10"] == pytest.approx(math.atanh(0.7) - math.atanh(0.2))

    def test_few_candidates_end_with_the_last(self) -> None:
        found = build_named_features([3.0, 1.0], similarity=[0.25, 1.0])
        assert found["margin_1_10"] == 2.0
        assert found["nearness_1_10"] == pytest.approx(math.atanh(sufficiency.MOST_COSINE) - math.atanh(0.25))

    def test_general_corpus_has_no_features_of_chains(self) -> None:
        said = chain(7, {6}, about={1, 2}, through=2, compared=True)
        scores, shared = [7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0], [0.3] * 7
        chained = ANSWER_FEATURES[ANSWER_FEATURES.index("covered") :]
        found = build_named_features(scores, shared, said=said, general=True)
        assert {found[name] for name in chained} == {0.0}
        assert all(build_named_features(scores, shared, said=said)[name] > 0.0 for name in chained)

    def test_mass_is_the_log_odds_of_the_best_two(self) -> None:
        best, rest = math.exp(2) + math.exp(1), math.exp(0) + math.exp(-1)
        assert build_named_features([2.0, 1.0, 0.0, -1.0])["mass"] == pytest.approx(math.log(best / rest))

    def test_the_last_stands_for_places_that_there_are_not(self) -> None:
        found = build_named_features([2.0, 1.0, -1.0])
        assert (found["margin_2_3"], found["margin_3_5"], found["margin_5_6"]) == (2.0, 0.0, 0.0)
        assert build_named_features([3.0])["mass"] == sufficiency.MOST_LOG_ODDS

    def test_shared_new_feature_reads_the_first_five_passages(self) -> None:
        assert (
            build_named_features([6.0, 5.0, 4.0, 3.0, 2.0, 1.0], [0.1, 0.0, 0.0, 0.0, 0.7, 0.9])["shared_new"]
            == 0.7
        )

    @given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.floats(0, 1))
    def test_they_are_finite_and_do_not_mind_a_shift(self, scores: list[float], share: float) -> None:
        falling = np.sort(np.array(scores))[::-1]
        last = chain(len(falling), {1, len(falling)}, through=1)
        zeros = np.zeros(len(falling))
        found = features(falling, zeros, zeros, share, last, expected=EXPECTED)
        assert np.isfinite(found).all()
        assert_allclose(features(falling + 3.0, zeros, zeros, share, last, expected=EXPECTED), found, atol=1e-6)

    def test_no_candidates_have_no_sufficiency_features(self) -> None:
        with pytest.raises(ValueError, match="without candidates"):
            features(np.zeros(0), np.zeros(0), np.zeros(0), 0.0, chain(0), expected=EXPECTED)

    def test_scores_have_to_fall(self) -> None:
        with pytest.raises(ValueError, match="falling"):
            features(np.array([1.0, 2.0]), np.zeros(2), np.zeros(2), 0.0, chain(2), expected=EXPECTED)


class TestChain:
    """Seven candidates; the first and the second are about what the question names, and in the pool."""

    SCORES = (7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0)

    def open(self, *sides: set[int], through: int = 2) -> float:
        return build_named_features([*self.SCORES], said=chain(7, *sides, about={1, 2}, through=through))["open"]

    def test_a_side_is_complete_by_one_of_the_first_five(self) -> None:
        assert self.open({3}, {5}) == 0.0
        assert self.open({3}, {6}) == 2.0
        assert self.open({3, 4}, set()) == 2.0  # two for one side are none for the other

    def test_another_side_completes_none(self) -> None:
        assert self.open({2}, {3}) == 2.0

    def test_it_counts_what_the_question_goes_through(self) -> None:
        assert self.open({6}, through=0) == 0.0
        assert self.open({6}, through=1) == 1.0
        assert self.open({6}, through=5) == sufficiency.MOST_BRIDGES

    def test_without_a_passage_about_what_is_named_nothing_is_complete(self) -> None:
        assert self.open() == 2.0

    def test_the_rival_is_the_best_beyond_the_five_that_leads_on(self) -> None:
        def rival(*sides: set[int]) -> float:
            return build_named_features([*self.SCORES], said=chain(7, *sides, about={1, 6}))["rival"]

        assert rival({3}, {7}) == pytest.approx(1 / (1 + math.exp(3.0 - 1.0)))
        assert rival({6}) == 0.0  # about what the question names
        assert rival({5}) == rival() == 0.0

    def test_equal_scores_make_an_even_rival(self) -> None:
        assert build_named_features([1.0] * 6, said=chain(6, {6}))["rival"] == 0.5

    def test_comparison_question_has_its_feature(self) -> None:
        assert build_named_features([*self.SCORES], said=chain(7, compared=True))["compared"] == 1.0

    def test_a_question_without_patterns_has_what_the_others_let_expect(self) -> None:
        expected = EXPECTED.copy()
        expected[0, ANSWER_FEATURES.index("bias")], expected[0, ANSWER_FEATURES.index("covered")] = 0.25, 0.5
        expected[1, ANSWER_FEATURES.index("margin_2_3")] = 0.125
        said = chain(7, {6}, about={1, 2}, through=None)
        found = build_named_features([*self.SCORES], share=0.5, said=said, expected=expected)
        assert (found["open"], found["compared"]) == (0.5, 0.125)
        patterned = build_named_features(
            [*self.SCORES], share=0.5, said=chain(7, {6}, about={1, 2}), expected=expected
        )
        assert {name for name in found if found[name] != patterned[name]} == {"open", "compared"}
        general = build_named_features([*self.SCORES], said=said, expected=expected, general=True)
        assert (general["open"], general["compared"]) == (0.0, 0.0)


def test_words_are_covered_by_weight_and_once() -> None:
    every = {1: 2.0, 2: 1.0, 3: 1.0}
    assert compute_word_coverage([{1: 2.0}, {1: 2.0, 2: 1.0}], every) == pytest.approx(3 / 4)
    assert compute_word_coverage([{1: 2.0}, {2: 1.0}], every, absent=4.0) == pytest.approx(3 / 8)
    assert compute_word_coverage([], every) == 0.0
    assert compute_word_coverage([], {}) == 1.0


class TestVerdictOutcome:
    """Sentence n is in passage 10 n; the first five are 10 to 50."""

    first = (10, 20, 30, 40, 50)

    def compute_outcome(
        self, *, known: bool = True, passages: tuple[int, ...] = (), **verdict: object
    ) -> int | None:
        logged = LoggedVerdict(passages=passages, **verdict)  # type: ignore[arg-type]
        pairs = [(10 * sentence, y) for sentence, y in logged.targets([]).items()]
        return label_evidence(logged, pairs, self.first, known=known)

    def test_all_of_a_complete_verdict_among_them_is_enough(self) -> None:
        assert self.compute_outcome(supports=(1, 5)) == 1
        assert self.compute_outcome(passages=(20,)) == 1

    def test_evidence_elsewhere_is_not_whatever_the_verdict_claims(self) -> None:
        assert self.compute_outcome(supports=(1, 6)) == 0
        assert self.compute_outcome(supports=(1, 6), missed=(6,)) == 0
        assert self.compute_outcome(supports=(6,), partial=True) == 0
        assert self.compute_outcome(passages=(60,)) == 0

    def test_a_sentence_that_was_missed_may_be_of_a_passage_that_was_not(self) -> None:
        assert self.compute_outcome(supports=(1, 2), missed=(2,)) == 1

    def test_retrieval_that_failed_is_not(self) -> None:
        assert self.compute_outcome(supports=(1,), retrieval_success=False) == 0
        assert self.compute_outcome(retrieval_success=False, partial=True) == 0

    def test_a_partial_verdict_does_not_say(self) -> None:
        assert self.compute_outcome(supports=(1,), partial=True) is None
        assert self.compute_outcome(rejects=(1,), partial=True) is None

    def test_verdict_of_rejections_alone_means_insufficient(self) -> None:
        assert self.compute_outcome(rejects=(1, 2)) == 0

    def test_verdict_that_names_nothing_is_no_observation(self) -> None:
        assert self.compute_outcome() is None
        assert self.compute_outcome(generation_success=True) is None
        assert self.compute_outcome(rejects=(1,), retrieval_success=True) is None

    def test_evidence_that_is_gone_may_have_been_elsewhere(self) -> None:
        assert self.compute_outcome(supports=(1,), known=False) is None
        assert self.compute_outcome(supports=(1, 6), known=False) == 0


class TestAnswerOutcome:
    """Sentence n is in passage 10 n; the first five are 10 to 50."""

    def compute_outcome(self, *, known: bool = True, **verdict: object) -> int | None:
        logged = LoggedVerdict(**verdict)  # type: ignore[arg-type]
        pairs = [(10 * sentence, y) for sentence, y in logged.targets([]).items()]
        return label_answer(logged, pairs, (10, 20, 30, 40, 50), known=known)

    def test_complete_verdict_says_what_it_says_of_passages(self) -> None:
        assert self.compute_outcome(supports=(1, 5)) == 1
        assert self.compute_outcome(supports=(1, 6)) == 0
        assert self.compute_outcome(rejects=(1,)) == 0
        assert self.compute_outcome() is None

    def test_partial_verdict_confirms_what_it_supports(self) -> None:
        assert self.compute_outcome(supports=(1,), partial=True) == 1
        assert self.compute_outcome(supports=(1,), rejects=(2,), partial=True) == 1
        assert self.compute_outcome(supports=(1, 6), partial=True) == 0
        assert self.compute_outcome(rejects=(1,), partial=True) is None
        assert self.compute_outcome(supports=(1,), partial=True, known=False) is None

    def test_thumb_says_it_unless_its_reason_is_about_something_else(self) -> None:
        assert self.compute_outcome(supports=(1,), partial=True, rating="up") == 1
        assert self.compute_outcome(rejects=(1,), examined=(0.5,), partial=True, rating="down") == 0
        assert self.compute_outcome(rejects=(1,), partial=True, rating="down", reason="too long") == 0
        assert self.compute_outcome(partial=True, rating="down", reason="missing", retrieval_success=False) == 0
        assert self.compute_outcome(rejects=(1,), partial=True, rating="down", reason="outdated") is None
        assert self.compute_outcome(partial=True, rating="down", reason="wrong_answer") is None

    def test_click_does_not_say(self) -> None:
        assert self.compute_outcome(supports=(1,), rejects=(2,), examined=(0.5,), partial=True) is None
        assert self.compute_outcome(supports=(6,), rejects=(2,), examined=(0.5,), partial=True) is None

    def test_partial_verdict_on_a_session_does_not_say(self) -> None:
        assert self.compute_outcome(supports=(1,), partial=True, on_session=True) is None
        assert self.compute_outcome(supports=(6,), partial=True, on_session=True) is None
        assert self.compute_outcome(supports=(1,), on_session=True) == 1


ANSWERS = st.lists(
    st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 1), st.floats(0.1, 4.0)), min_size=1, max_size=12
)


def draw_answer(seed: int) -> np.ndarray:
    return np.append(1.0, np.random.default_rng(seed).normal(size=SIZE - 1))


def simulate_judges(draw: np.random.Generator, complaints: float, count: int) -> tuple[float, float, float]:
    """Simulate judges of answers; return three means over other answers.

    They are the mean prediction less the truth, what it rose on insufficient answers, and what the AUC rose.
    """
    shape = np.linspace(0.9, 0.3, 5)
    prior = WeightBelief(np.append(0.8, shape), np.diag([2.0, *[1 / 0.15] * 5]))
    answers = np.column_stack([np.ones(4_000), draw.normal(size=(4_000, 5))])
    before = sigmoid(answers @ prior.mean)
    truth = prior.mean + np.append(0.0, draw.normal(scale=math.sqrt(0.15), size=5))
    for _ in range(40):
        truth[0] += 4.0 * (before.mean() - sigmoid(answers @ truth).mean())
    right = draw.random(4_000) < sigmoid(answers @ truth)
    said = draw.random(2_000) < np.where(right[:2_000], 0.95, complaints)
    total = build_empty_evidence(6 + 1)
    for at in np.flatnonzero(said)[:count]:
        total = total + build_counted_observation(answers[at], int(right[at]), prior, 0.5).evidence
    after = sigmoid(answers @ compute_learned_mean(prior, total))
    before, after, right = before[2_000:], after[2_000:], right[2_000:]

    def compute_auc(values: np.ndarray) -> float:
        return float((values[right][:, None] > values[~right]).mean())

    return (
        float(after.mean() - right.mean()),
        float((after - before)[~right].mean()),
        compute_auc(after) - compute_auc(before),
    )


def draw_ranked_answers(draw: np.random.Generator, count: int, *, general: bool) -> np.ndarray:
    """Features of ``count`` answers, (count, SIZE): of 30 candidates up to five stand out."""
    rows = []
    for _ in range(count):
        standing_out = np.append(draw.exponential(1.5, size=draw.integers(1, 6)), np.zeros(25))[:30]
        scores = draw.normal(size=len(standing_out)) + standing_out
        said = chain(len(scores), about={1}, through=int(draw.integers(3)), compared=bool(draw.integers(2)))
        rows.append(
            features(
                np.sort(scores)[::-1],
                draw.uniform(0.2, 0.7, size=len(scores)),
                draw.uniform(size=len(scores)),
                draw.uniform(),
                said,
                expected=EXPECTED,
                general=general,
            )
        )
    return np.array(rows)


class TestObserve:
    def test_of_a_sure_prior_it_is_the_gradient_at_its_mean(self) -> None:
        prior = WeightBelief(np.linspace(-1, 1, SIZE), 1e12 * np.eye(SIZE))
        x, step = draw_answer(0), 1e-6
        for outcome in (0, 1):

            def log_likelihood(weights: np.ndarray, outcome: int = outcome) -> float:
                p = probability(x, weights)
                return math.log(p if outcome else 1 - p)

            slope = [
                (log_likelihood(prior.mean + step * row) - log_likelihood(prior.mean - step * row)) / (2 * step)
                for row in np.eye(SIZE)
            ]
            seen = build_observation(x, outcome, prior, 2.0)
            assert_allclose(seen.evidence.information, np.array(slope) / 2.0, rtol=1e-5, atol=1e-8)
            p = probability(x, prior.mean)
            curvature = (p - 0.5) / (x @ prior.mean)
            assert p * (1 - p) < curvature < 0.25
            assert_allclose(seen.evidence.precision, curvature * np.outer(x, x) / 2.0)
            counted = build_counted_observation(x, outcome, prior, 2.0).evidence
            assert_array_equal(counted.information, [*seen.evidence.information, outcome / 2.0])
            assert_array_equal(counted.precision[:SIZE, :SIZE], seen.evidence.precision)
            assert_array_equal(counted.precision[SIZE], [*[0.0] * SIZE, 0.5])
            assert seen.surprise == pytest.approx(1 - p if outcome else p)

    def test_the_less_sure_the_prior_the_less_a_verdict_holds_it_where_it_is(self) -> None:
        x, mean = draw_answer(0), np.linspace(-1, 1, SIZE)
        curvatures = [
            build_observation(x, 1, WeightBelief(mean, sure * np.eye(SIZE)), 1.0).evidence.precision[0, 0]
            for sure in (100.0, 1.0, 0.01)
        ]
        assert curvatures[0] > curvatures[1] > curvatures[2] > 0
        # ξ² = (w·x)² + |x|² / 0.01
        xi = math.sqrt((x @ mean) ** 2 + x @ x / 0.01)
        assert curvatures[2] == pytest.approx(math.tanh(xi / 2) / (2 * xi))

    @given(st.integers(0, 2**32 - 1), st.integers(0, 1), st.floats(-8.0, 8.0))
    def test_its_parabola_lies_below_the_likelihood_and_touches_it(
        self, seed: int, outcome: int, along: float
    ) -> None:
        x, prior = draw_answer(seed), WeightBelief(np.linspace(-1, 1, SIZE), np.eye(SIZE))
        seen = build_observation(x, outcome, prior, 1.0).evidence

        def compute_excess(odds: float) -> float:
            """By how much the log-likelihood is above the parabola, but for a constant."""
            there = (odds - x @ prior.mean) * x / (x @ x)
            parabola = seen.information @ there - 0.5 * there @ seen.precision @ there
            return -float(np.logaddexp(0.0, -odds if outcome else odds) + parabola)

        touching = math.sqrt((x @ prior.mean) ** 2 + x @ x)
        assert compute_excess(touching) == pytest.approx(compute_excess(-touching), abs=1e-9)
        assert compute_excess(touching) <= compute_excess(touching + along) + 1e-9

    def test_certain_prior_gives_the_maximal_curvature(self) -> None:
        x = draw_answer(0)
        sure = WeightBelief(np.zeros(SIZE), 1e18 * np.eye(SIZE))
        assert_allclose(build_observation(x, 1, sure, 1.0).evidence.precision, 0.25 * np.outer(x, x))

    @given(ANSWERS)
    def test_the_order_of_verdicts_does_not_matter_and_one_is_left_out_by_its_term(
        self, answers: list[tuple[int, int, float]]
    ) -> None:
        terms = [
            build_counted_observation(draw_answer(seed), outcome, FLAT, noise).evidence
            for seed, outcome, noise in answers
        ]

        def compute_mean(some: list[WeightEvidence]) -> np.ndarray:
            return compute_learned_mean(FLAT, sum(some, build_empty_evidence(SIZE + 1)))

        assert_allclose(compute_mean(terms[::-1]), compute_mean(terms), rtol=1e-9, atol=1e-9)
        less = sum(terms, build_empty_evidence(SIZE + 1)) - terms[0]
        assert_allclose(compute_learned_mean(FLAT, less), compute_mean(terms[1:]), rtol=1e-6, atol=1e-6)

    @given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.floats(0.1, 10))
    def test_confirmed_answer_comes_further_above_a_denied_one(self, one: int, other: int, noise: float) -> None:
        good, bad = draw_answer(one), draw_answer(other)
        learned = compute_learned_mean(
            FLAT,
            build_counted_observation(good, 1, FLAT, noise).evidence
            + build_counted_observation(bad, 0, FLAT, noise).evidence,
        )
        assert (good - bad) @ (learned - FLAT.mean) >= 0.0

    @given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=12))
    @pytest.mark.parametrize("outcome", [0, 1])
    def test_one_outcome_alone_leaves_the_prior(self, outcome: int, seeds: list[int]) -> None:
        prior = WeightBelief(np.linspace(-1, 1, SIZE), np.eye(SIZE))
        terms = [build_counted_observation(draw_answer(seed), outcome, prior, 0.5).evidence for seed in seeds]
        learned = compute_learned_mean(prior, sum(terms, build_empty_evidence(SIZE + 1)))
        assert_allclose(learned, prior.mean, rtol=0, atol=1e-12)

    def test_verdicts_count_by_their_contrast_and_leave_the_level(self) -> None:
        answers = [draw_answer(1), draw_answer(2)]
        terms = [
            build_counted_observation(x, outcome, FLAT, 0.5).evidence
            for x, outcome in zip(answers, (1, 0), strict=True)
        ]
        total = terms[0] + terms[1]
        share = (2.0 / (2.0 + VERDICTS_FOR_HALF_WEIGHT)) ** 2
        scaled = WeightEvidence(share * total.information[:SIZE], share * total.precision[:SIZE, :SIZE])
        learned = compute_learned_mean(FLAT, total)
        assert_allclose(learned[1:], posterior(FLAT, scaled).mean[1:])
        centre = total.precision[0, :SIZE] / total.precision[0, 0]
        assert centre @ learned == pytest.approx(centre @ FLAT.mean, abs=1e-12)

    @pytest.mark.parametrize("complaints", [0.05, 0.3, 0.8])
    @pytest.mark.parametrize("count", [30, 150])
    def test_judges_who_mostly_confirm_do_not_flatter_other_answers(self, complaints: float, count: int) -> None:
        """The answers' level is the prior's, their shape is not. Judges confirm 95% of right answers."""
        errors, rises, gains = np.array(
            [simulate_judges(np.random.default_rng(seed), complaints, count) for seed in range(20)]
        ).T
        assert abs(errors.mean()) <= 0.05
        assert gains.mean() >= 0.0
        if count == 30:
            assert rises.mean() <= 0.03

    @pytest.mark.parametrize("kind", get_args(CorpusKind))
    @pytest.mark.parametrize("count", [0, 10, 30, 100, 300, 1_000])
    def test_one_verdict_moves_no_other_answer_by_more_than_half_a_percent(
        self, kind: CorpusKind, count: int
    ) -> None:
        """``count`` verdicts came before, of judges who confirm 95% of right answers and deny 30% of others."""
        draw, prior = np.random.default_rng(count), load_priors().select_kind(kind).sufficiency
        answers = draw_ranked_answers(draw, 200, general=kind == "general")
        right = draw.random(len(answers)) < sigmoid(answers @ prior.mean)
        terms = [
            [build_counted_observation(row, outcome, prior, 0.5).evidence for outcome in (0, 1)] for row in answers
        ]
        asked = draw.integers(len(answers), size=2 * count)
        judged = asked[draw.random(len(asked)) < np.where(right[asked], 0.95, 0.3)][:count]
        total = sum((terms[at][int(right[at])] for at in judged), build_empty_evidence(SIZE + 1))
        before = sigmoid(answers @ compute_learned_mean(prior, total))
        for newest in draw.integers(len(answers), size=20):
            for term in terms[newest]:
                after = sigmoid(answers @ compute_learned_mean(prior, total + term))
                assert np.abs(np.delete(after - before, newest)).max() <= 0.005

    def test_what_cannot_be_is_refused(self) -> None:
        with pytest.raises(ValueError, match="positive"):
            build_counted_observation(draw_answer(0), 1, FLAT, 0.0)
        with pytest.raises(ValueError, match="must be 0 or 1"):
            build_counted_observation(draw_answer(0), 2, FLAT, 1.0)


def test_a_probability_is_one_whatever_the_weights() -> None:
    x = np.ones(SIZE)
    values = [probability(x, np.full(SIZE, scale)) for scale in (-1e6, -1.0, 0.0, 1.0, 1e6)]
    assert (values[0], values[2], values[-1]) == (0.0, 0.5, 1.0)
    assert all(one < other for one, other in itertools.pairwise(values))
