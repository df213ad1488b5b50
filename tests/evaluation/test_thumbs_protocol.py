"""The protocol ``thumbs``: who rates what, who learns from it, and what is reported."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram_evaluation import thumbs_protocol, thumbs_table
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.feedback_rules import RatedAnswer
from engram_evaluation.protocols import MEMORY_OFF, PARAPHRASES, SHARING_GROUP
from engram_evaluation.retrieval_metrics import QuestionResult, score
from engram_evaluation.run_options import Options
from engram_evaluation.thumbs_protocol import compare, plan
from engram_evaluation.thumbs_stream import Thumb, draw_thumbs, follow, list_sampled, rate_answer
from engram_evaluation.thumbs_table import (
    ARMS,
    ARRIVALS_GROUP,
    ARRIVING_GROUP,
    ENGRAM,
    NO_LEARNING,
    OTHER_GROUP,
    THUMB_RATES,
    WRONG_RATES,
    name_arm,
)
from tests.evaluation.conftest import Evaluate
from tests.support import undo
from tests.support.state import rows

QUESTION = Question("q", "Who?", frozenset({"p2"}), (), "one")
OTHER = Question("r", "Where?", frozenset({"p1"}), (), "one")
SHOWN = ["p1", "p2", "p3", "p4", "p5"]


@pytest.fixture
def few(sample_dataset: Dataset) -> Dataset:
    return replace(sample_dataset, questions=sample_dataset.questions[:8])


def test_a_thumb_follows_the_evidence_unless_it_is_wrong() -> None:
    for shown, wrong, up in ((SHOWN, False, True), (SHOWN[2:], False, False), (SHOWN, True, False)):
        assert rate_answer(QUESTION, shown, Thumb(wrong, cites=False)) == RatedAnswer("q", up, tuple(shown), ())


def test_an_answer_cites_the_evidence_or_its_first_passage() -> None:
    for shown, cited in ((SHOWN, ("p2",)), (SHOWN[2:], ("p3",))):
        assert rate_answer(QUESTION, shown, Thumb(wrong=False, cites=True)).cited == cited


def test_thumbs_are_as_rare_and_as_wrong_as_is_asked_for() -> None:
    drawn = {rate: draw_thumbs(20_000, rate, 0.3, "seed") for rate in THUMB_RATES}
    for rate, thumbs in drawn.items():
        assert len(thumbs) / 20_000 == pytest.approx(rate, rel=0.3)
    often = drawn[0.1].values()
    assert sum(thumb.wrong for thumb in often) / len(often) == pytest.approx(0.3, abs=0.03)
    assert sum(thumb.cites for thumb in often) / len(often) == pytest.approx(0.5, abs=0.03)
    assert drawn[0.001].items() <= drawn[0.01].items() <= drawn[0.1].items()
    assert not any(thumb.wrong for thumb in draw_thumbs(1_000, 0.1, 0.0, "seed").values())


@dataclass
class MendingLearner:
    """Puts the evidence first once a question was rated."""

    rated: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)

    def answer(self, question: Question) -> Sequence[str]:
        self.asked.append(question.id)
        return sorted(question.relevant) if question.id in self.rated else SHOWN[2:]

    def rate(self, question: Question, _rated: RatedAnswer, _judge: str) -> None:
        self.rated.add(question.id)


def test_the_lag_counts_wrong_answers_before_the_first_right_one() -> None:
    arriving = [QUESTION, OTHER, QUESTION, QUESTION, OTHER, QUESTION]
    learner, steps = MendingLearner(), list[None]()
    outcome = follow(learner, arriving, {2: Thumb(False, False)}, {"q", "r"}, "user", lambda: steps.append(None))
    assert outcome.lags == {"q": 2, "r": None}  # its arrivals 1 and 2 were wrong, the third is right
    assert len(steps) == len(outcome.sampled) == len(arriving)


def test_what_cannot_have_changed_is_not_asked() -> None:
    arriving = [QUESTION] * 1_000
    learner = MendingLearner()
    outcome = follow(learner, arriving, {500: Thumb(False, False)}, {"q"}, "user", lambda: None)
    assert outcome.lags == {"q": 501}
    assert len(learner.asked) == len(list_sampled(1_000)) + 2  # the rated one, and the one after it


def test_groups_do_not_overlap(sample_dataset: Dataset) -> None:
    planned = plan(sample_dataset, 20, 0)
    came = {question.id for question in planned.groups[ARRIVING_GROUP]}
    assert came == {question.id for question in planned.arriving}
    assert len(planned.arriving) == 20
    assert not came & {question.id for question in planned.groups[OTHER_GROUP]}
    taught = frozenset[str]().union(*(question.relevant for question in planned.groups[ARRIVING_GROUP]))
    assert not any(question.relevant & taught for question in planned.groups[OTHER_GROUP])
    assert planned.groups[PARAPHRASES] == sample_dataset.list_paraphrases(planned.groups[ARRIVING_GROUP])
    assert all(question.relevant & taught for question in planned.groups[SHARING_GROUP])


def test_a_question_is_compared_with_itself_without_learning() -> None:
    before = {row.id: row for row in score([QuestionResult(QUESTION, SHOWN)])}
    (row,) = compare(score([QuestionResult(QUESTION, SHOWN[2:])]), before)
    assert row.values["gain"] == -before["q"].values["ndcg@10"]
    assert (row.values["recall_change"], row.values["lost"]) == (-1.0, 1.0)


def test_every_way_to_learn_is_measured_at_every_share(
    few: Dataset, run_protocol: Evaluate, application: Application
) -> None:
    report = run_protocol("thumbs", few, limit=40)
    names = {name_arm(arm, rate, wrong) for arm in ARMS for rate in THUMB_RATES for wrong in WRONG_RATES}
    last = name_arm(ENGRAM, THUMB_RATES[0], WRONG_RATES[-1])
    by_arm: dict[str, set[str]] = {}
    for phase in report.phases:
        by_arm.setdefault(phase.arm, set()).add(phase.group)
    assert {NO_LEARNING, *names, f"{last}, {MEMORY_OFF}"} <= by_arm.keys()
    assert {ARRIVALS_GROUP, ARRIVING_GROUP, PARAPHRASES} <= by_arm[last]
    drawn = draw_thumbs(40, THUMB_RATES[0], WRONG_RATES[-1], "thumbs/0")
    assert drawn
    for group in (ARRIVING_GROUP, PARAPHRASES):
        assert report.value("gain", group, 0, f"{last}, {MEMORY_OFF}") == 0.0
    grids = thumbs_table.build_grids(report.lines())
    assert [len(row) for grid in grids for row in grid.rows] == [1 + len(ARMS)] * sum(len(g.rows) for g in grids)
    assert grids[0].rows[0][0] == NO_LEARNING
    undo.assert_verified(application, f"evaluate-{few.name}")
    assert run_protocol("thumbs", few, limit=40).phases == report.phases


def test_each_thumb_is_of_another_judge(
    few: Dataset, run_protocol: Evaluate, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thumbs_protocol, "ARMS", (ENGRAM,))
    monkeypatch.setattr(thumbs_protocol, "list_shares", lambda: [(THUMB_RATES[0], WRONG_RATES[-1])])
    run_protocol("thumbs", few, limit=40)
    events = rows(application, f"evaluate-{few.name}", "feedback_event")
    assert len({event["judge"] for event in events}) == len(events) > 1
    assert {event["rating"] for event in events} <= {"up", "down"}


def test_options_foreign_to_thumbs_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="--turns means nothing to --protocol thumbs"):
        Options(protocol="thumbs", turns=2)
