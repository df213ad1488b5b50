"""Questions that nobody has judged: who is asked after how many verdicts, and what the report says."""

from dataclasses import replace

import pytest

from engram.context.errors import InvalidRequestError
from engram_evaluation import unseen_protocol
from engram_evaluation.change_table import GroupChange
from engram_evaluation.dataset import Dataset
from engram_evaluation.report_table import SummaryLine
from engram_evaluation.unseen_table import GATE, JUDGED, OTHERS, SHARING, build_grids
from tests.evaluation.conftest import Evaluate


@pytest.fixture
def many(sample_dataset: Dataset) -> Dataset:
    """Every question in four wordings."""
    worded = [
        replace(question, id=f"{question.id}-{number}", text=f"{question.text.rstrip('?')}, asks caller {number}?")
        for question in sample_dataset.questions
        for number in range(4)
    ]
    return replace(sample_dataset, questions=tuple(worded), paraphrases={})


@pytest.mark.parametrize(
    ("judged", "counts"), [(25, [0, 25]), (40, [0, 25, 40]), (50, [0, 25, 50]), (201, [0, 25, 50, 100, 200, 201])]
)
def test_counts_double_up_to_all(judged: int, counts: list[int]) -> None:
    assert unseen_protocol.list_counts(judged) == counts


def test_who_is_asked_is_never_judged_and_others_share_nothing(many: Dataset) -> None:
    planned = unseen_protocol.plan(many, 30, 0)
    judged = {question.id for question in planned.judged}
    evidence = {passage for question in planned.judged for passage in question.relevant}
    before, first, last = (planned.group(count) for count in (0, 25, 30))

    assert len(judged) == 30
    assert not judged & {question.id for question in planned.asked}
    assert all(not question.relevant & evidence for question in first.get(OTHERS, []))
    assert first.get(OTHERS) == last.get(OTHERS)
    assert all(question.relevant & evidence for question in last[SHARING])
    assert {question.id for question in first[SHARING]} <= {question.id for question in before[SHARING]}
    assert first[JUDGED] == list(planned.judged[:25])
    assert unseen_protocol.plan(many, 30, 0) == planned != unseen_protocol.plan(many, 30, 1)


def test_few_questions_cannot_be_measured(sample_dataset: Dataset) -> None:
    few = replace(sample_dataset, questions=sample_dataset.questions[:30])
    with pytest.raises(InvalidRequestError, match="20 questions to judge, of 25 at least"):
        unseen_protocol.plan(few, None, 0)


def test_with_the_gate_off_a_refused_encoder_serves_and_is_taken_back(
    run_protocol: Evaluate, many: Dataset
) -> None:
    """The sample has too few needs for the gate. A dense ranking moves with the gate off only."""
    report = run_protocol("unseen", replace(many, questions=many.questions[:48]), limit=25)
    rankings = {
        (phase.arm, phase.group, phase.turn): [row.ranking for row in phase.rows]
        for phase in report.phases
        if phase.group == JUDGED
    }

    assert rankings["dense", JUDGED, 25] == rankings["dense", JUDGED, 0]
    assert rankings["dense, gate off", JUDGED, 25] != rankings["dense", JUDGED, 0]
    assert ("default", JUDGED, 25) in rankings
    assert ("default, gate off", JUDGED, 25) not in rankings
    (decision,) = (phase.rows[0] for phase in report.phases if phase.group == GATE)
    assert decision.details["reason"].startswith("not learned: verdicts on")
    changed = next(
        change
        for change in report.as_json()["changes"]
        if (change["arm"], change["group"], change["metric"]) == ("default", JUDGED, "recall@5")
    )
    assert (changed["turn"], changed["questions"]) == (25, 25)
    assert changed["after"] >= changed["before"]
    assert "gate off: it serves whatever they say" in report.markdown()


def test_a_table_has_a_line_for_each_number_of_verdicts() -> None:
    changes = [
        GroupChange(arm, OTHERS, "recall@5", turn, 8, 0.5, 0.5 + turn / 1000, -0.01, 0.1, None, 1, 0)
        for turn in (25, 50)
        for arm in ("dense", "dense, gate off")
    ]
    values = {"used": 0.5, "gain": 0.02, "error": 0.01, "overlap": 0.7}
    lines = [SummaryLine(GATE, GATE, 25, 1, {"used": 0.0}), SummaryLine(GATE, GATE, 50, 1, values)]
    others, decisions = build_grids(lines, changes)

    assert others.headings == ["others: R@5 after verdicts", "n", "dense", "dense, gate off"]
    assert [row[:3] for row in others.rows] == [
        ["25", "8", "0.500 -> 0.525 (-0.010 to +0.100)"],
        ["50", "8", "0.500 -> 0.550 (-0.010 to +0.100)"],
    ]
    assert decisions.rows == [["25", "0.00", "too few needs", ""], ["50", "0.50", "+0.020 ± 0.010", "0.70"]]
