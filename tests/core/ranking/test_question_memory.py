"""Question memory: what its verdicts weigh, and how it competes with the base ranking."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.learning.kalman import update_supports
from engram.core.ranking import question_memory
from engram.core.ranking.question_memory import (
    LEAST_RECALL,
    collect_passage_probabilities,
    compute_recall_lifts,
    compute_recall_probabilities,
    compute_reliability,
    compute_ungated_support,
    find_even_odds,
    net_acceptance,
    net_support,
    select_likely,
)

units = st.floats(0.0, 1.0)


def test_a_prior_is_the_most_probable_past_question_and_not_the_sum() -> None:
    priors = compute_recall_probabilities([(1, 0.5, 0.6), (1, 0.5, 0.6), (1, 0.25, 0.8), (2, 1.0, 0.5)])

    assert priors == {1: pytest.approx(0.3), 2: pytest.approx(0.5)}


def test_one_full_verdict_on_the_question_itself_is_right_26_times_of_27() -> None:
    assert compute_reliability(2 / 3) == pytest.approx(26 / 27)


def test_other_needs_and_unsupported_sentences_give_no_prior() -> None:
    assert compute_recall_probabilities([(1, 0.0, 1.0), (2, 1.0, 0.0), (3, 0.019, 1.0)]) == {}


def test_a_passage_has_the_highest_prior_of_its_sentences_and_of_its_duplicates() -> None:
    priors = collect_passage_probabilities({1: 0.2, 2: 0.6, 3: 0.9, 4: 0.5}, {1: 10, 2: 10, 3: 30}, {30: 20})

    assert priors == {10: 0.6, 20: 0.9}


def test_only_what_is_more_likely_evidence_than_not_leads() -> None:
    assert select_likely({1: 0.5, 2: 0.499, 3: 1.0, 4: 0.75}) == {3: 1.0, 4: 0.5}


def test_a_recalled_passage_is_evidence_if_either_is_right_and_others_lose() -> None:
    scores = np.log([4.0, 1.0, 0.25])
    reference = find_even_odds(scores, 1.2)
    base = 1 / (1 + np.exp(reference - scores))
    lifted = scores + compute_recall_lifts(scores, np.array([0.0, 0.0, 0.6]), 1.2) - reference

    expected = np.array([0.8 * base[0], 0.8 * base[1], 0.6 + 0.4 * base[2]])
    assert lifted == pytest.approx(np.log(expected / (1 - expected)))
    assert base.sum() == pytest.approx(1.2)


def test_while_the_same_need_is_less_probable_than_not_others_keep_their_scores() -> None:
    scores = np.array([3.0, 2.0, 1.0])

    assert compute_recall_lifts(scores, np.array([0.0, 0.0, 0.5]), 1.0)[:2] == pytest.approx([0.0, 0.0], abs=1e-9)


def test_a_weak_recall_does_not_overtake_a_sure_base_ranking() -> None:
    scores = np.array([9.0, 4.0, 3.0, 2.0, 1.0, -9.0])
    lifted = scores + compute_recall_lifts(scores, np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.3]), 1.0)

    assert lifted.argmax() == 0


def test_where_several_passages_answer_a_recall_overtakes_fewer() -> None:
    scores, recalled = np.array([3.0, 2.8, 0.0, -9.0]), np.array([0.0, 0.0, 0.0, 0.55])

    alone = scores + compute_recall_lifts(scores, recalled, 1.0)
    together = scores + compute_recall_lifts(scores, recalled, 1.9)
    assert alone.argsort()[::-1].tolist() == [3, 0, 1, 2]
    assert together.argsort()[::-1].tolist() == [0, 1, 3, 2]


@given(st.lists(st.tuples(st.floats(-30, 30), st.floats(0, 1)), min_size=1, max_size=20), st.floats(0.5, 5))
def test_recall_keeps_the_order_of_what_it_does_not_recall(
    rows: list[tuple[float, float]], evidence_count: float
) -> None:
    scores, priors = (np.array(column) for column in zip(*rows, strict=True))
    lifts = compute_recall_lifts(scores, priors, evidence_count)

    assert np.isfinite(lifts).all()
    unrecalled = np.flatnonzero(priors == 0)
    assert (lifts[unrecalled] <= 1e-9).all()
    ordered = unrecalled[np.argsort(scores[unrecalled])]
    assert (np.diff((scores + lifts)[ordered]) >= -1e-9).all()
    if not priors.any():
        assert not lifts.any()


def test_several_rankings_are_changed_at_once() -> None:
    scores, priors = np.array([[3.0, 1.0, 0.0], [0.0, 1.0, 3.0]]), np.array([0.0, 0.7, 0.9])

    together = compute_recall_lifts(scores, priors, 1.0)
    assert together == pytest.approx(np.array([compute_recall_lifts(row, priors, 1.0) for row in scores]))


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=30), st.floats(0.5, 5))
def test_as_many_passages_as_expected_are_evidence(scores: list[float], evidence_count: float) -> None:
    values = np.array(scores)
    probabilities = 1 / (1 + np.exp(find_even_odds(values, evidence_count) - values))

    assert probabilities.sum() == pytest.approx(min(evidence_count, len(values) / 2), abs=1e-6)


@given(st.lists(st.tuples(st.integers(0, 4), units, units), max_size=12))
def test_priors_do_not_depend_on_the_order_of_supports(supports: list[tuple[int, float, float]]) -> None:
    priors = compute_recall_probabilities(supports)

    assert compute_recall_probabilities(reversed(supports)) == priors
    assert all(LEAST_RECALL <= prior <= 1.0 for prior in priors.values())


@given(st.lists(st.booleans(), min_size=1, max_size=20), st.sampled_from([0.2, 0.5, 2.0]))
def test_an_ungated_support_is_the_share_of_verdicts_that_supported(verdicts: list[bool], noise: float) -> None:
    support, perplexity, tiny = np.zeros(1), np.ones(1), 1e-9
    for verdict in verdicts:
        update = update_supports(support, perplexity, np.array([float(verdict)]), np.array([noise]), tiny)
        support, perplexity = update.supports, update.perplexities
    share = sum(verdicts) / len(verdicts)

    assert compute_ungated_support(float(support[0]), float(perplexity[0])) == pytest.approx(share, abs=1e-6)
    assert float(support[0]) < share or share == 0


def test_an_ungated_support_stays_in_range() -> None:
    assert compute_ungated_support(0.9, 0.2) == 1.0  # 1.125
    assert compute_ungated_support(0.0, 1.0) == 0.0


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=8), st.sampled_from([0.0, 0.3]))
def test_a_rejection_takes_from_a_net_support_what_a_support_gave(verdicts: list[float], before: float) -> None:
    support, perplexity = np.full(1, before), np.ones(1)
    for verdict in verdicts:
        update = update_supports(support, perplexity, np.array([verdict]), np.array([0.5]), 1e-12)
        support, perplexity = update.supports, update.perplexities
    balance = (1 - float(perplexity[0])) * sum(1 if verdict else -1 for verdict in verdicts) / len(verdicts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(question_memory, "SUPPORT_BEFORE_VERDICTS", before)
        state = float(support[0]), float(perplexity[0])
        assert net_support(*state) == pytest.approx(max(balance, 0.0), abs=1e-6)
        assert net_acceptance(*state) == pytest.approx(balance, abs=1e-6)


Verdicts = Sequence[tuple[float, float]]
"""Targets and confidences, in the order in which they came."""
REJECTION = (0.0, 1.0)
SUPPORT = (1.0, 1.0)


def judge(verdicts: Verdicts) -> float:
    """The net rejection that they leave, with the noises of a trusted judge and no caps."""
    support, perplexity = np.zeros(1), np.ones(1)
    for target, confidence in verdicts:
        noise = np.array([(0.5 if target else 1.0) / confidence])
        moved = update_supports(support, perplexity, np.array([target]), noise, 1e-12)
        support, perplexity = moved.supports, moved.perplexities
    return max(0.0, -net_acceptance(float(support[0]), float(perplexity[0])))


@pytest.mark.parametrize(
    ("verdicts", "net"),
    [
        ([], 0),
        ([REJECTION], 1 / 2),
        ([REJECTION] * 2, 2 / 3),
        ([(0.0, 1 / 3)], 1 / 4),
        ([(0.0, 1 / 2)] * 2, 1 / 2),
        ([(0.0, 1 / 3)] * 3, 1 / 2),
        ([SUPPORT], 0),
        ([REJECTION, SUPPORT], 0),
        ([REJECTION] * 3 + [SUPPORT], 1 / 6),
        ([REJECTION, SUPPORT, SUPPORT], 0),
    ],
)
def test_a_rejection_is_believed_by_all_that_judges_said_in_any_order(verdicts: Verdicts, net: float) -> None:
    assert [judge(verdicts), judge(verdicts[::-1])] == pytest.approx([net, net], abs=1e-6)


@pytest.mark.parametrize(
    ("verdicts", "first"),
    [
        ([], True),
        ([REJECTION], False),
        ([(0.0, 1 / 3)], True),
        ([(0.0, 1 / 2)], True),
        ([(0.0, 1 / 3)] * 3, False),
        ([(0.0, 1 / 2)] * 2, False),
        ([REJECTION, SUPPORT], True),
    ],
    ids=["none", "a full one", "a graded one", "a bare thumb", "three graded ones", "two half ones", "mixed votes"],
)
@pytest.mark.parametrize("lead", [3.0, 30.0])
def test_a_full_rejection_takes_any_lead(verdicts: Verdicts, first: bool, lead: float) -> None:
    scores = np.array([1.0 + lead, 1.0, 0.0])
    lifts = compute_recall_lifts(scores, np.zeros(3), 2.0, np.array([judge(verdicts), 0.0, 0.0]))

    assert bool((scores + lifts).argmax() == 0) is first
    assert lifts[1:].tolist() == [0.0, 0.0]


@given(st.lists(st.tuples(st.floats(-20, 20), units), min_size=2, max_size=9))
def test_a_passage_that_is_rejected_more_overtakes_none(pairs: list[tuple[float, float]]) -> None:
    scores = np.sort(np.array([score for score, _ in pairs]))[::-1]
    rejections = np.sort(np.array([rejection for _, rejection in pairs]))
    after = scores + compute_recall_lifts(scores, np.zeros(len(pairs)), 1.0, rejections)

    assert (np.diff(after) <= 1e-6).all()


def test_a_thumb_down_without_citations_leaves_a_clear_first_passage_first() -> None:
    scores = np.array([12.9, 6.8, 6.7, 5.7, 5.3, 5.2])
    rejections = np.array([judge([(0.0, 1 / (2 * rank))]) for rank in range(1, 6)] + [0.0])

    assert (scores + compute_recall_lifts(scores, np.zeros(6), 1.5, rejections)).argmax() == 0


@pytest.mark.parametrize(
    ("recalled", "rejected", "order"),
    [
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0, 1, 2]),
        ([0.0, 0.0, 0.0], [0.96, 0.0, 0.0], [1, 2, 0]),
        ([0.0, 0.0, 0.96], [0.0, 0.96, 0.0], [2, 0, 1]),
        ([0.96, 0.0, 0.0], [0.5, 0.0, 0.0], [0, 1, 2]),
        ([0.5, 0.0, 0.0], [0.96, 0.0, 0.0], [1, 2, 0]),
    ],
    ids=["nothing", "the first rejected", "one recalled, one rejected", "recall is surer", "rejection is surer"],
)
def test_a_rejected_passage_goes_down(recalled: list[float], rejected: list[float], order: list[int]) -> None:
    scores = np.array([3.0, 2.0, 1.0])

    lifts = compute_recall_lifts(scores, np.array(recalled), 2.0, np.array(rejected))

    assert np.argsort(-(scores + lifts)).tolist() == order


def test_a_rejection_of_one_passage_leaves_the_scores_of_others() -> None:
    scores = np.array([3.0, 2.0, 1.0])

    lifts = compute_recall_lifts(scores, np.zeros(3), 2.0, np.array([0.96, 0.0, 0.0]))

    assert lifts[1:].tolist() == [0.0, 0.0]
    assert lifts[0] < 0
