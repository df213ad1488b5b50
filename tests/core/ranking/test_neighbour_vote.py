"""Vote of judged questions: what it is worth is learned by leaving each judged question out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.ranking.neighbour_vote import (
    UNTAUGHT,
    VOTE_WIDTH,
    AskedQuestions,
    Neighbours,
    VoteWeights,
    compute_thinning,
    learn_weights,
)
from engram.core.ranking.question_priors import PRIOR_VOTE


def near(*judged: tuple[set[int], float, float], words: float | dict[int, float] = 0.5) -> Neighbours:
    """Neighbours: evidence, log odds of the same need, and nearness of each; share of words in each passage."""
    evidence, log_odds, nearness = zip(*judged, strict=True) if judged else ((), (), ())
    shares = words if isinstance(words, dict) else dict.fromkeys(set().union(*evidence), words)
    return Neighbours(list(evidence), np.array(log_odds), np.array(nearness), np.zeros(len(judged)), shares)


def draw_log(needs: int, wordings: int, noise: float, seed: int = 0) -> list[tuple[set[int], Neighbours]]:
    """Each question of a log with its neighbours: questions of one need are near, by chance others are as well."""
    random = np.random.default_rng(seed)
    places = [need for need in range(needs) for _ in range(wordings)]
    left_out = []
    for own, need in enumerate(places):
        others = [other for at, other in enumerate(places) if at != own]
        nearness = np.array([random.normal(5.0 if other == need else 3.0, noise) for other in others])
        nearest = np.argsort(-nearness)[:16]
        left_out.append(
            (
                {need},
                near(*(({others[at]}, float(nearness[at]) - 7.0, float(nearness[at])) for at in nearest)),
            )
        )
    return left_out


def test_before_any_question_is_left_out_the_log_odds_of_the_nearest_count() -> None:
    votes = UNTAUGHT.count(near(({1}, 2.0, 6.0), ({2}, -1.0, 4.0)))

    assert votes[1].probability == pytest.approx(1 / (1 + np.exp(-2.0)))
    assert votes[2].probability == pytest.approx(1 / (1 + np.exp(1.0)))
    assert (learn_weights([]).weights == PRIOR_VOTE).all()


def test_the_features_are_those_that_are_described() -> None:
    share, count, words = (
        VoteWeights(np.array(weights), 9, 0.5)
        for weights in ([0.0, 0.0, 1.0, 0.0, 0.0], [0.5, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 2.0])
    )
    neighbours = near(({1}, 0.0, 6.0), ({2}, 0.0, 6.0 - VOTE_WIDTH * np.log(2)), ({1}, 0.0, 6.0))

    # Two supporters as near as can be against one of half their weight; a fourth is added to both sides.
    assert share.count(neighbours)[1].probability == pytest.approx(2.25 / (2.25 + 0.75))
    assert count.count(neighbours)[2].probability == pytest.approx(1 / (1 + np.exp(-0.5) / 1.5))
    worded = words.count(near(({1, 2}, 0.0, 6.0), words={1: 0.75, 2: float("nan")}))
    assert worded[1].probability == pytest.approx(1 / (1 + (0.3 / 0.8) ** 2 * np.exp(1.0)))
    assert worded[2].probability == 0.5


def test_questions_that_agree_count_together_and_others_against_them() -> None:
    weights = learn_weights(draw_log(12, 4, 1.5))
    one = weights.count(near(({1}, -1.0, 5.0)))[1].probability
    three = weights.count(near(({1}, -1.0, 5.0), ({1}, -1.0, 5.0), ({1}, -1.0, 5.0)))[1].probability
    opposed = weights.count(near(({1}, -1.0, 5.0), ({2}, -1.0, 5.0), ({3}, -1.0, 5.0)))[1].probability

    assert three > one + 0.02
    assert opposed < one - 0.05


def test_a_contrast_takes_weight_from_a_vote() -> None:
    weights = learn_weights(draw_log(12, 4, 0.7))
    neighbours = near(({1}, -1.0, 5.0), ({2}, -1.0, 5.0))
    contrasted = replace(neighbours, log_ratios=np.array([-2.0, 0.0]))

    assert weights.count(contrasted)[1].probability < weights.count(neighbours)[1].probability
    assert weights.count(contrasted)[2].probability > weights.count(neighbours)[2].probability


def test_where_words_tell_passages_apart_a_vote_is_worth_more_to_those_that_have_them() -> None:
    taught = learn_weights(
        [({need}, near(({need}, 0.0, 5.0), ({-1}, 0.0, 5.0), words={need: 0.9, -1: 0.4})) for need in range(20)]
    )
    votes = taught.count(near(({1}, 0.0, 5.0), ({2}, 0.0, 5.0), words={1: 0.9, 2: 0.4}))

    assert votes[1].probability > 0.85
    assert votes[2].probability < 0.15


def test_where_needs_repeat_votes_are_worth_more_than_where_none_does() -> None:
    repeated, single = learn_weights(draw_log(12, 5, 0.7)), learn_weights(draw_log(60, 1, 0.7))
    neighbours = near(({1}, -2.0, 5.0), ({1}, -2.2, 4.8), ({2}, -4.0, 3.0))

    assert repeated.count(neighbours)[1].probability > 0.9
    assert single.count(neighbours)[1].probability < 0.3
    assert (repeated.questions, single.questions) == (60, 60)


def test_asked_questions_stand_for_the_repeated_needs_that_judged_ones_lack() -> None:
    """Each need was judged once, and half of the asked questions have one of them."""
    judged, asked = draw_log(60, 1, 0.7), [near for _, near in draw_log(60, 2, 0.7, seed=1)]
    repeated = [np.where(near.nearness == near.nearness.max(), 2.0, -4.0) for near in asked]
    alone, half, whole = (
        learn_weights(judged, AskedQuestions(asked, repeated, weight)) for weight in (0.0, 0.5, 1.0)
    )
    neighbours = near(({1}, -2.0, 5.0), ({2}, -4.0, 3.0))

    said = [weights.count(neighbours)[1].probability for weights in (alone, half, whole)]
    assert alone.weights.tolist() == learn_weights(judged).weights.tolist()
    assert said[0] < 0.3 < said[1] < said[2]
    assert whole.questions == 60


@pytest.mark.parametrize("wordings", [2, 3, 5])
def test_votes_are_calibrated_on_new_questions(wordings: int) -> None:
    """Each need has equally many judged questions: leaving one out would put its need at a disadvantage."""
    weights = learn_weights(draw_log(40, wordings, 0.9))
    said, seen = [], []
    for need, neighbours in draw_log(40, wordings + 1, 0.9, seed=1):
        votes = weights.count(neighbours)
        best = max(votes, key=lambda passage, votes=votes: votes[passage].probability)
        said.append(votes[best].probability)
        seen.append(best in need)

    assert np.mean(said) == pytest.approx(np.mean(seen), abs=0.08)


def test_passages_of_one_answer_share_its_votes() -> None:
    votes = UNTAUGHT.count(near(({1, 2}, 3.0, 6.0), ({2}, 1.0, 5.0)))

    assert votes[1].probability == votes[2].probability
    assert (len(votes[1].supporters), votes[1].others) == (1, 1)
    assert (len(votes[2].supporters), votes[2].others) == (2, 0)


def test_questions_without_evidence_and_far_ones_are_not_counted() -> None:
    votes = UNTAUGHT.count(near(({1}, 3.0, 6.0), (set(), 3.0, 6.0), ({2}, -3.0, 6.0 + VOTE_WIDTH * np.log(0.04))))

    assert votes.keys() == {1, 2}
    assert (len(votes[1].supporters), votes[1].others) == (1, 0)
    assert (len(votes[2].supporters), votes[2].others) == (0, 1)
    assert UNTAUGHT.count(near()) == {}


def test_thinning_is_for_logs_in_which_every_need_comes_equally_often() -> None:
    by_design = [({need}, near(({need}, 0.0, 5.0))) for need in range(20) for _ in range(2)]
    by_chance = [({0}, near(*[({0}, 0.0, 5.0)] * 9))] * 10 + [
        ({need}, near(({0}, 0.0, 5.0))) for need in range(1, 9)
    ]
    single = [({need}, near(({need + 1}, 0.0, 5.0))) for need in range(20)]

    assert compute_thinning(by_design) == pytest.approx((1 + 0.1) / (2 * 1 + 0.1))
    assert compute_thinning(by_chance) == 1.0
    assert compute_thinning(single) == 1.0
    assert compute_thinning([]) == 1.0


LOG = draw_log(6, 4, 0.9)
TAUGHT = learn_weights(LOG)


@given(st.permutations(range(24)))
def test_the_order_of_questions_does_not_matter(order: list[int]) -> None:
    assert learn_weights([LOG[at] for at in order]).weights == pytest.approx(TAUGHT.weights, abs=1e-7)


@given(st.lists(st.tuples(st.sets(st.integers(0, 5)), st.floats(-30, 30), st.floats(-5, 12)), max_size=16))
def test_probabilities_stay_in_range(judged: list[tuple[set[int], float, float]]) -> None:
    votes = TAUGHT.count(near(*judged))

    assert votes.keys() == {passage for evidence, _, _ in judged for passage in evidence}
    assert all(0.0 <= vote.probability <= 1.0 for vote in votes.values())
