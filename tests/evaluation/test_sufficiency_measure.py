"""How well it is told whether an answer is enough: the figures, and what they are of."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram.core.ranking.weight_beliefs import WeightBelief
from engram_evaluation.commands.dataset_names import load_dataset
from engram_evaluation.harness import open_harness
from engram_evaluation.sufficiency_learning import measure_draws
from engram_evaluation.sufficiency_measure import (
    SufficiencyPrediction,
    auc,
    calibration_error,
    compute_least_error,
    measure,
)
from engram_evaluation.verdict_givers import OracleJudge
from engram_evaluation.weight_fit import holds_all_relevant
from tests.support import state


def build_prediction(probability: float, *, is_sufficient: bool) -> SufficiencyPrediction:
    return SufficiencyPrediction(probability, is_sufficient, recall=0.0, hops=1, ms=1.0)


class TestFigures:
    def test_the_area_under_the_curve_counts_pairs(self) -> None:
        assert auc([0.9, 0.4], [0.1, 0.4]) == (1 + 1 + 1 + 0.5) / 4
        assert auc([0.2], [0.3]) == 0.0
        assert auc([], [0.3]) is None
        assert auc([0.3], []) is None

    def test_the_calibration_error_is_the_gap_of_each_bin_by_its_size(self) -> None:
        answers = [
            build_prediction(0.91, is_sufficient=True),
            build_prediction(0.95, is_sufficient=False),
            build_prediction(0.99, is_sufficient=True),
            build_prediction(1.0, is_sufficient=True),
        ]
        answers.append(build_prediction(0.2, is_sufficient=False))
        assert calibration_error(answers) == pytest.approx((4 * abs(3 / 4 - 3.85 / 4) + 1 * 0.2) / 5)
        assert calibration_error([]) == 0.0

    def test_exact_predictions_have_no_calibration_error(self) -> None:
        assert (
            calibration_error(
                [build_prediction(1.0, is_sufficient=True), build_prediction(0.0, is_sufficient=False)]
            )
            == 0.0
        )

    def test_the_least_error_is_what_chance_alone_makes(self) -> None:
        assert compute_least_error([build_prediction(0.5, is_sufficient=True)]) == 0.5
        assert (
            compute_least_error(
                [build_prediction(1.0, is_sufficient=False), build_prediction(0.0, is_sufficient=True)]
            )
            == 0.0
        )
        # Of four at 1/2 none or four hold twice in 16 times, one or three eight times.
        four = [build_prediction(0.5, is_sufficient=False)] * 4
        assert compute_least_error(four) == pytest.approx((2 * 0.5 + 8 * 0.25) / 16, abs=0.04)
        assert compute_least_error(four) == compute_least_error(four)
        assert compute_least_error([]) == 0.0

    @pytest.mark.parametrize(
        ("relevant", "first", "holds_all"),
        [
            ("ab", "bxayz", True),
            ("ab", "bxcyz", False),
            ("abcdefg", "abcde", True),
            ("abcdefg", "abcdx", False),
            ("", "abcde", True),
        ],
    )
    def test_all_is_as_many_as_there_can_be(self, relevant: str, first: str, holds_all: bool) -> None:
        assert holds_all_relevant(set(relevant), list(first)) == holds_all


class TestMeasuredDraws:
    """400 answers, half of them enough by one feature, which the prior knows nothing of."""

    PRIOR = WeightBelief(np.zeros(2), np.eye(2))
    HELD = np.arange(400) % 2 == 0
    ROWS = np.column_stack([np.ones(400), np.where(HELD, 1.0, -1.0)])

    def test_verdicts_on_some_answers_tell_others(self) -> None:
        before, few, many = measure_draws(self.PRIOR, self.ROWS, self.HELD, [5, 50], 4, 0.5)
        assert (before.verdicts, before.measured, before.auc, before.ece) == (0, 400, 0.5, 0.0)
        assert before.loss == pytest.approx(np.log(2))
        assert [(one.verdicts, one.measured, one.auc) for one in (few, many)] == [(5, 395, 1.0), (50, 350, 1.0)]
        assert before.loss > few.loss > many.loss
        # What is told is true but for how sure it is: each answer's probability is its distance from what was so.
        assert many.ece == pytest.approx(1 - np.exp(-many.loss), abs=0.01)
        assert many.ece_if_calibrated < 0.05

    def test_judged_answers_are_not_measured(self) -> None:
        """Answers with nothing in common: a verdict on one says nothing of another, and much of its own."""
        alone = WeightBelief(np.zeros(7), np.diag([1e12, *[1.0] * 6]))
        rows = np.column_stack([np.ones(6), np.eye(6)])
        _, after = measure_draws(alone, rows, np.array([True] * 6), [4], 20, 0.01)
        assert (after.measured, after.auc) == (2, None)
        assert after.loss == pytest.approx(np.log(2), abs=1e-6)

    def test_somebody_has_to_be_left(self) -> None:
        with pytest.raises(InvalidRequestError, match="leave none to measure after 400 verdicts"):
            measure_draws(self.PRIOR, self.ROWS, self.HELD, [5, 400], 1, 0.5)


def test_the_sample_is_measured_and_left_as_it_was(application: Application) -> None:
    sample = load_dataset(Path("sample"))
    stretches: list[tuple[str, int]] = []

    def begin(label: str, total: int) -> Callable[[], None]:
        stretches.append((label, total))
        return lambda: None

    harness = open_harness(application, sample, lambda _done, _total: None)
    found = measure(harness, sample, [sample], OracleJudge("full"), begin, verdicts=2, seeds=[0, 1], limit=8)

    assert (found["questions"], found["after"]["verdicts"]) == (8, 2)
    assert set(found["stopping"]) == {"none", "coverage", "learned"}
    assert set(found["telling"]) == {"coverage", "learned"}
    assert len({(quality["share_sufficient"], quality["auc"]) for quality in found["telling"].values()}) > 1
    assert len({quality["share_sufficient"] for quality in found["telling"].values()}) == 1
    assert found["stopping"]["none"]["hops"] >= found["stopping"]["coverage"]["hops"]
    assert 0 <= found["before"]["ece"] <= 1
    assert 0 < found["before"]["mean_probability"] < 1
    assert found["answerable"][sample.name] == 0.5  # its own questions are as answerable as themselves
    assert [total for label, total in stretches if label.startswith("verdicts")] == [2, 2]
    assert [total for label, total in stretches if label.startswith("after")] == [6, 6]
    assert state.snapshot(application, harness.collection, state.WEIGHTS) == {
        "learned_weights": [],
        "weight_audit": [],
    }


def test_questions_without_their_evidence_are_measured(application: Application) -> None:
    whole = load_dataset(Path("sample"))
    sample = replace(whole, questions=whole.questions[:16])

    def begin(_label: str, _total: int) -> Callable[[], None]:
        return lambda: None

    harness = open_harness(application, sample, lambda _done, _total: None)
    held = harness.scope.collection.passage_count
    judge = OracleJudge("full")
    found = measure(harness, sample, [], judge, begin, verdicts=0, seeds=[0], lacking=3)["lacking"]
    gone = {min(question.relevant) for question in sample.questions[:3]}

    assert found["questions"] == 3
    assert found["others"] == sum(not question.relevant & gone for question in sample.questions)
    assert found["probability_after"] < found["probability_before"]
    assert found["auc"] > 0.5
    assert harness.scope.collection.passage_count == held - len(gone)
    assert open_harness(application, sample, lambda _done, _total: None).scope.collection.passage_count == held
