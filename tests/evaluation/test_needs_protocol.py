"""Other wordings of judged needs: which are judged, which are asked, and what each way to judge teaches."""

from dataclasses import replace

import pytest

from engram.context.errors import InvalidRequestError
from engram_evaluation import needs_protocol
from engram_evaluation.dataset import Dataset
from engram_evaluation.needs_table import ARMS, COMPLETE
from tests.evaluation.conftest import Evaluate

WORDINGS = needs_protocol.FIRST_ASKED + 2


@pytest.fixture
def worded(sample_dataset: Dataset) -> Dataset:
    """Three questions in 22 wordings each, and one that is asked in a single way."""
    needs = sample_dataset.questions[:3]
    worded = [
        replace(need, id=f"{need.id}-{number}", text=f"{need.text.rstrip('?')}, asks caller {number}?")
        for need in needs
        for number in range(WORDINGS)
    ]
    return replace(sample_dataset, questions=(*worded, sample_dataset.questions[5]), paraphrases={})


def test_wordings_that_are_asked_are_never_judged(worded: Dataset) -> None:
    planned = needs_protocol.plan(worded, None, 0)
    judged = [question.id for turn in planned.judged for question in turn]

    assert [len(turn) for turn in planned.judged] == [3] * needs_protocol.MOST_JUDGED
    assert len(set(judged)) == len(judged)
    assert len(planned.asked) == 3 * 2
    assert not {question.id for question in planned.asked} & set(judged)
    assert len(needs_protocol.plan(worded, 4, 0).asked) == 4


def test_needs_in_few_wordings_cannot_be_measured(sample_dataset: Dataset) -> None:
    with pytest.raises(InvalidRequestError, match="no need with more than 20 wordings"):
        needs_protocol.plan(sample_dataset, None, 0)


def test_the_report_has_each_way_to_judge_after_each_number_of_verdicts(
    run_protocol: Evaluate, worded: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needs_protocol, "JUDGED_COUNTS", (0, 2))
    monkeypatch.setattr(needs_protocol, "MOST_JUDGED", 2)
    report = run_protocol("needs", worded, limit=3)

    assert {(phase.arm, phase.turn) for phase in report.phases} == {(arm, turn) for arm in ARMS for turn in (0, 2)}
    taught = next(phase for phase in report.phases if (phase.arm, phase.turn) == (COMPLETE, 2))
    assert all(row.values["first"] == row.values["seen"] == 1.0 for row in taught.rows)
    assert all(0.5 < row.values["said"] <= 1.0 for row in taught.rows)
    (off,) = report.drift
    assert all("said" not in row.values for row in off.rows)
