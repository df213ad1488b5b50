"""The protocol ``thumbs``: who rates what, and that all arms learn from the same ratings."""

from dataclasses import replace
from itertools import product

import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.protocols import PARAPHRASES, SHARING_GROUP
from engram_evaluation.run_options import Options
from engram_evaluation.thumbs_protocol import (
    ENGRAM,
    NO_LEARNING,
    OTHER_GROUP,
    RATED_GROUP,
    RULES,
    draw_rating,
    plan,
)
from tests.evaluation.conftest import Evaluate
from tests.support import undo
from tests.support.state import rows

QUESTION = Question("q", "Who?", frozenset({"p2"}), (), "one")
SHOWN = ["p1", "p2", "p3", "p4", "p5"]
DRAWS = 2_000


@pytest.fixture
def few(sample_dataset: Dataset) -> Dataset:
    return replace(sample_dataset, questions=sample_dataset.questions[:8])


def test_thumbs_follow_the_evidence_and_err_one_time_in_ten() -> None:
    for shown, right in ((SHOWN, 0.9), (SHOWN[2:], 0.1)):
        ups = sum(draw_rating(QUESTION, shown, str(draw)).up for draw in range(DRAWS)) / DRAWS
        assert ups == pytest.approx(right, abs=0.02)


def test_half_of_the_ratings_cite_the_evidence_or_the_first_passage() -> None:
    for shown, wanted in ((SHOWN, ("p2",)), (SHOWN[2:], ("p3",))):
        cited = [draw_rating(QUESTION, shown, str(draw)).cited for draw in range(DRAWS)]
        assert set(cited) == {(), wanted}
        assert sum(map(bool, cited)) / DRAWS == pytest.approx(0.5, abs=0.03)


def test_groups_do_not_overlap(sample_dataset: Dataset) -> None:
    planned = plan(sample_dataset, 20, 0)
    rated = {question.id for question in planned.groups[RATED_GROUP]}
    assert rated == {question.id.rpartition("#")[0] for question in planned.arriving}
    assert len(planned.arriving) == 20
    assert not rated & {question.id for question in planned.groups[OTHER_GROUP]}
    taught = frozenset[str]().union(*(question.relevant for question in planned.groups[RATED_GROUP]))
    assert not any(question.relevant & taught for question in planned.groups[OTHER_GROUP])
    assert planned.groups[PARAPHRASES] == sample_dataset.list_paraphrases(planned.groups[RATED_GROUP])
    assert all(question.relevant & taught for question in planned.groups[SHARING_GROUP])


def test_without_paraphrases_questions_that_share_a_passage_are_measured(sample_dataset: Dataset) -> None:
    planned = plan(replace(sample_dataset, paraphrases={}), 20, 0)
    taught = frozenset[str]().union(*(question.relevant for question in planned.groups[RATED_GROUP]))
    assert PARAPHRASES not in planned.groups
    assert all(question.relevant & taught for question in planned.groups.get(SHARING_GROUP, ()))


def test_every_arm_is_measured_on_every_group(
    few: Dataset, run_protocol: Evaluate, application: Application
) -> None:
    report = run_protocol("thumbs", few, limit=12)
    arms = {NO_LEARNING, ENGRAM, *RULES}
    groups = {phase.group for phase in report.phases}
    assert {(phase.arm, phase.group) for phase in report.phases} == set(product(arms, groups))
    assert {RATED_GROUP, PARAPHRASES} <= groups
    name = f"evaluate-{few.name}"
    events = rows(application, name, "feedback_event")
    assert len(events) == 12
    assert len({event["judge"] for event in events}) == 12
    assert {event["rating"] for event in events} <= {"up", "down"}
    undo.assert_verified(application, name)
    again = run_protocol("thumbs", few, limit=12)
    assert again.phases == report.phases


def test_options_foreign_to_thumbs_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="--turns means nothing to --protocol thumbs"):
        Options(protocol="thumbs", turns=2)
