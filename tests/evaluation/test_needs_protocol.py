"""Other wordings of judged needs: which are judged, which are asked, and what each way to judge teaches."""

from dataclasses import replace

import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram.core.ranking.remembered_sufficiency import PastEvidence
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


def test_wordings_are_judged_or_measured_or_neither(worded: Dataset) -> None:
    planned = needs_protocol.plan(worded, None, 0)
    judged = [question.id for turn in planned.judged for question in turn]
    between = [question.id for question in planned.between]
    measured = [question.id for question in planned.asked]

    assert [len(turn) for turn in planned.judged] == [3] * needs_protocol.MOST_JUDGED
    assert len(between) == len(judged)
    assert len(measured) == 3 * 2
    assert len({*judged, *between, *measured}) == 3 * WORDINGS
    assert needs_protocol.plan(worded, None, 0) == planned
    assert needs_protocol.plan(worded, None, 1).between != planned.between
    assert len(needs_protocol.plan(worded, 4, 0).asked) == 4


def test_of_past_questions_with_one_passage_the_surest_counts() -> None:
    sure, far, rejected = (
        PastEvidence(question_id, passage_id, near, supported, answered=1.0, sufficiency=1.0)
        for question_id, passage_id, near, supported in ((1, 7, 0.9, True), (2, 7, 0.1, True), (3, 8, 0.95, False))
    )

    assert needs_protocol.select_strongest([sure, far, rejected]) == {7: 0.9}
    assert needs_protocol.select_strongest([far, sure]) == {7: 0.9}


def test_needs_in_few_wordings_cannot_be_measured(sample_dataset: Dataset) -> None:
    with pytest.raises(InvalidRequestError, match="no need with more than 20 wordings"):
        needs_protocol.plan(sample_dataset, None, 0)


def test_the_report_has_each_way_to_judge_after_each_number_of_verdicts(
    application: Application, run_protocol: Evaluate, worded: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needs_protocol, "JUDGED_COUNTS", (0, 2))
    monkeypatch.setattr(needs_protocol, "MOST_JUDGED", 2)
    report = run_protocol("needs", worded, limit=3)

    assert {(phase.arm, phase.turn) for phase in report.phases} == {(arm, turn) for arm in ARMS for turn in (0, 2)}
    taught = next(phase for phase in report.phases if (phase.arm, phase.turn) == (COMPLETE, 2))
    assert all(row.values["first"] == row.values["seen"] == 1.0 for row in taught.rows)
    assert all(0.5 < row.values["said"] <= 1.0 for row in taught.rows)
    first = [change for change in report.as_json()["changes"] if change["metric"] == "first"]
    assert [(change["arm"], change["turn"]) for change in first] == [(arm, 2) for arm in ARMS]
    assert first[0]["after"] == 1.0
    with application.database.read() as reader:
        stored = reader.rows("SELECT question FROM episode ORDER BY created_at, id")
    between = [question.text for question in needs_protocol.plan(worded, 3, 0).between]
    assert [row.question for row in stored if row.question in between] == between[:12]
    (off,) = report.drift
    assert all("said" not in row.values for row in off.rows)
