"""Whether held-out verdicts accept an adapter."""

from dataclasses import replace

import numpy as np
import pytest

from engram.wings.tuning.core.acceptance import (
    AcceptanceRule,
    cap_judges,
    decide,
    divide_samples,
    find_needs,
    measure_gain,
    rank_quality,
    recall_evidence,
    try_adapter,
    try_tuning,
)
from engram.wings.tuning.core.learn_adapter import TuningOptions, TuningSamples, prepare_questions
from tests.wings.tuning.small_bert import make_weights

RULE = AcceptanceRule(least_needs=4)


def decide_by(
    gains: list[float],
    shares: list[bool] | None = None,
    overlap: float | None = None,
    recalls: list[float] | None = None,
) -> tuple[bool, str]:
    count = len(gains)
    shared = np.array(shares or [False] * count)
    recalled = np.array(recalls or [np.nan] * count)
    found = decide(np.array(gains), recalled, shared, np.arange(count), np.ones(count), None, overlap, RULE)
    return found.accepted, found.reason


def test_needs_are_connected_questions() -> None:
    assert find_needs([[1], [2, 3], [4], [3, 1], [5]]).tolist() == [0, 0, 2, 0, 4]


def test_folds_measure_both_groups() -> None:
    supported = [[need] for need in range(4) for _ in range(6)] + [[100 + row] for row in range(24)]
    folds, needs = divide_samples(supported, 3, seed=0)
    assert np.bincount(folds).tolist() == [16, 16, 16]
    spread = [len(set(folds[needs == need])) for need in np.unique(needs)]
    assert spread.count(3) == 2
    assert spread.count(1) == 26


def test_quality_is_ndcg() -> None:
    passages = np.eye(12, dtype=np.float32)
    vector = np.linspace(1, 0.1, 12, dtype=np.float32)[None]
    # Places 1 and 3 of two relevant: (1 + 1/2) / (1 + 1/log2(3)); place 12 does not count.
    expected = (1 + 1 / 2) / (1 + 1 / np.log2(3))
    assert rank_quality(vector, passages, [[0, 2]])[0] == pytest.approx(expected)
    assert rank_quality(vector, passages, [[11]])[0] == 0.0


def test_errors_are_of_needs() -> None:
    gains = np.array([0.3, 0.3, 0.3, 0.3, -0.1, -0.1, -0.1, -0.1])
    alone = measure_gain(gains, np.arange(8), np.ones(8))
    two = measure_gain(gains, np.array([0] * 4 + [1] * 4), np.ones(8))
    assert alone.mean == two.mean == pytest.approx(0.1)
    assert alone.error == pytest.approx(0.2 / np.sqrt(7))
    assert two.error == pytest.approx(0.2)  # deviation of two means, 0.2828, over the root of 2
    assert measure_gain(gains, np.zeros(8, dtype=int), np.ones(8)).z == 0.0


def test_decisions() -> None:
    assert decide_by([0.1, 0.2, 0.1, 0.2, 0.1, 0.2]) == (True, "used: held-out questions +.150 ± .022")
    assert decide_by([0.1, -0.1, 0.2, -0.1, 0.1, -0.1]) == (False, "not used: held-out questions +.017 ± .054")
    assert decide_by([0.2, 0.2, 0.2])[1] == "not used: held-out verdicts on 3 needs, of 4 at least"
    gaining, losing = [0.5, 0.4] * 4, [-0.1, -0.11, -0.09]
    accepted, reason = decide_by(gaining + losing, [False] * 8 + [True] * 3)
    assert not accepted
    assert "that share evidence -.100" in reason
    assert decide_by([*gaining, -0.1, 0.1, -0.05], [False] * 8 + [True] * 3)[0]
    assert decide_by([0.1, 0.2] * 4, overlap=0.9)[0]
    accepted, reason = decide_by([0.1, 0.2] * 4, overlap=0.1)
    assert reason == "not used: unjudged questions keep 10% of their first five passages"
    assert decide_by([0.1, 0.2] * 4, recalls=[-1.0, 1.0, 0.0, -1.0] * 2)[0]
    accepted, reason = decide_by([0.1, 0.2] * 4, recalls=[-1.0, 0.0, np.nan, -1.0] * 2)
    assert reason == "not used: evidence recalled by neighbouring questions -.667 ± .211"


def test_neighbours_vote_for_evidence() -> None:
    of_need = np.array([0, 0, 0, 0, 1, 2])
    vectors = (np.eye(9)[of_need] + 0.5 * np.eye(9)[3 + np.arange(6)]).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    supported = [[1], [1], [1], [2], [2], [3]]
    # 3 is near those that another passage answers; 4 is near nobody; 5 has evidence of its own.
    recalled = recall_evidence(vectors, supported, np.arange(6))
    np.testing.assert_array_equal(recalled, [1, 1, 1, 0, 0, np.nan])


def test_a_gain_of_one_judge_alone_is_refused() -> None:
    gains, honest = np.array([0.4, 0.5] * 10 + [-0.05, -0.03] * 10), [str(row % 4) for row in range(20)]
    rows = (gains, np.full(40, np.nan), np.zeros(40, dtype=bool), np.arange(40), np.ones(40))
    found = decide(*rows, ["hostile"] * 20 + honest, None, RULE)
    assert (found.accepted, found.reason) == (
        False,
        "not used: held-out questions gain by one judge's verdicts alone",
    )
    assert decide(*rows, honest * 2, None, RULE).accepted
    assert decide(*rows, ["one"] * 40, None, RULE).accepted


def test_no_judge_weighs_more_than_a_quarter() -> None:
    judges = ["hostile"] * 500 + [name for name in "abcdefghij" for _ in range(20)]
    counts = cap_judges(np.ones(700), judges, 0.25)
    assert counts[:500].sum() / counts.sum() == pytest.approx(0.25)
    assert (counts[500:] == 1).all()
    for few in (["a"] * 3 + ["b"] * 30, ["a"] * 33):
        capped = cap_judges(np.ones(33), few, 0.25)
        assert max(np.bincount([judge == "b" for judge in few], capped)) / capped.sum() == pytest.approx(
            1 / len(set(few))
        )
    assert cap_judges(np.ones(2), None, 0.25).tolist() == [1, 1]


OPTIONS = TuningOptions(rank=2, adapted_layers=2, epochs=6, batch_size=4, rate=5e-3, pull=0.1)
RULES = AcceptanceRule(least_needs=20, least_overlap=0.0)


def make_samples(right: bool) -> TuningSamples:
    """Of each question two passages are equally near; evidence is always on the same side, or on any."""
    random = np.random.default_rng(4)
    questions = [np.array([1, *random.integers(3, 40, 4), 2]) for _ in range(48)]
    base = prepare_questions(make_weights(), questions, OPTIONS).base
    side = random.normal(size=16).astype(np.float32) / 4
    passages = np.concatenate([base + side, base - side])
    passages /= np.linalg.norm(passages, axis=1, keepdims=True)
    supported = [[row if right or random.random() < 0.5 else row + 48] for row in range(48)]
    return TuningSamples(
        [f"q{row:02}" for row in range(48)], questions, supported, [[]] * 48, np.ones(48), passages
    )


@pytest.mark.parametrize("right", [True, False])
def test_verdicts_without_a_rule_are_refused(right: bool) -> None:
    samples = make_samples(right)
    probes = samples.questions[:5]
    trial = try_tuning(make_weights(), samples, probes, OPTIONS, RULES)
    assert trial.acceptance.accepted is right, trial.acceptance.reason
    assert 0 <= trial.acceptance.overlap <= 1
    again = try_tuning(make_weights(), samples, probes, OPTIONS, RULES)
    assert again.acceptance == trial.acceptance
    assert again.adapter.to_bytes() == trial.adapter.to_bytes()


def test_an_adapter_of_another_collection_is_tried_on_questions_that_it_cannot_know() -> None:
    samples = make_samples(right=True)
    weights = make_weights()
    adapter = try_tuning(weights, samples, [], OPTIONS, RULES).adapter
    decisions = [
        try_adapter(weights, samples, samples.questions[:5], adapter, set(samples.keys[:count]), OPTIONS, RULES)
        for count in (0, 10, 40)
    ]
    assert [one.acceptance.accepted for one in decisions] == [True, True, False]
    assert [one.acceptance.others.questions for one in decisions] == [48, 38, 8]
    assert decisions[2].acceptance.reason == "not used: held-out verdicts on 8 needs, of 20 at least"
    assert {one.adapter.to_bytes() for one in decisions} == {adapter.to_bytes()}


def test_unjudged_questions_that_move_far_refuse_it() -> None:
    samples = make_samples(right=True)
    trial = try_tuning(make_weights(), samples, samples.questions, OPTIONS, replace(RULES, least_overlap=1.0))
    assert not trial.acceptance.accepted
    assert trial.acceptance.reason.startswith("not used: unjudged questions keep")
