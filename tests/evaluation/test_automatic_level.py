"""``min_sufficiency`` "auto" on company documents in three languages, with questions that they do not answer."""

import random
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from uuid import uuid4

import pytest

from engram.composition.container import Application
from engram.services.question.answer import Answer
from engram.services.question.query import Query
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram_evaluation.dataset import Dataset, Question, load
from engram_evaluation.harness import Harness, open_harness
from engram_evaluation.weight_fit import holds_all_relevant
from tests.evaluation.conftest import FULL

DOCUMENTS = Path(__file__).parents[2] / "evaluation_sets" / "company_documents"
VERDICTS = 30


@pytest.fixture(scope="module")
def documents() -> Dataset:
    return load(DOCUMENTS)


def ask(harness: Harness, question: Question) -> Answer:
    query = Query(text=question.text, scope=harness.scope, min_sufficiency="auto")
    return harness.services.answers.question.answer(query)


def is_right(harness: Harness, question: Question) -> bool:
    """Whether all evidence is among the first five passages where nothing is withheld."""
    answer = harness.services.answers.question.answer(Query(text=question.text, scope=harness.scope))
    return holds_all_relevant(question.relevant, [passage.passage_id for passage in answer.passages])


def judge(harness: Harness, questions: Sequence[Question]) -> None:
    """Confirm 95% of the right answers and deny 30% of the others, until there are enough verdicts."""
    draw, given = random.Random(1), 0
    for question in draw.sample(questions, len(questions)):
        answer = harness.services.answers.question.answer(Query(text=question.text, scope=harness.scope))
        first = [passage.passage_id for passage in answer.passages]
        right = bool(question.relevant) and holds_all_relevant(question.relevant, first)
        if given == VERDICTS or draw.random() > (0.95 if right else 0.3):
            continue
        cited = tuple(NamedSentence(passage_id=passage) for passage in question.relevant) if right else ()
        verdict = Verdict(
            query_id=answer.query_id,
            scope=harness.scope,
            judge=f"judge {given % 10}",
            rating="up" if right else "down",
            reason=None if right else "missing",
            cited=cited,
        )
        assert harness.services.learning.verdicts.accept(verdict, uuid4().hex, wait=True).event.status == "applied"
        given += 1


@FULL
def test_auto_withholds_few_right_answers_and_verdicts_do_not_flatter_absent_ones(
    application: Application, documents: Dataset
) -> None:
    harness = open_harness(application, documents, lambda done, total: None)
    harness.reset()
    assert application.retrieval.levels.measure(harness.scope.collection).value is not None

    answers = [ask(harness, question) for question in documents.questions if is_right(harness, question)]
    absent = [ask(harness, question) for question in documents.unlabelled]
    assert {answer.sufficiency_level and answer.sufficiency_level.source for answer in answers} == {"passages"}
    withheld = fmean(answer.insufficient for answer in answers)
    assert withheld <= 0.1
    assert withheld < fmean(answer.insufficient for answer in absent)

    judge(harness, [*documents.questions, *documents.unlabelled])
    later = [ask(harness, question) for question in documents.unlabelled]
    before, after = (fmean(answer.sufficiency or 0.0 for answer in each) for each in (absent, later))
    assert after <= before + 0.03
