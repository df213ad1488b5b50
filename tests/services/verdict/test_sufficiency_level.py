"""The level of sufficiency survives verdicts, whichever answers people judge."""

import random
from collections.abc import Mapping
from statistics import fmean

import numpy as np
import pytest

from engram.composition.container import Application
from engram.core.ranking.sufficiency import ANSWER_FEATURES, EVIDENCE_PASSAGES, probability
from engram.services.question.answer import Answer
from engram.services.question.query import Query
from engram.wings.local import sample
from tests.support import state, undo

CORRECTIONS, RIGHT = 4, 20
ASKED = 70
"""Questions among whose answers right ones are looked for."""
SHOWN = 10
QUESTIONS = sample.questions()[:70]
JUDGED = 50
"""Questions with one verdict each."""
KINDS = ("partial", "complete", "thumb")
"""Of verdicts: ``tests/core/ranking/test_sufficiency.py`` has users of each kind alone."""


def ask(application: Application, name: str, text: str) -> Answer:
    return application.answers.question.answer(
        Query(text=text, scope=application.auth.access.scope(name), top_k=SHOWN)
    )


def ask_with_trace(application: Application, name: str, text: str) -> Answer:
    scope, include = application.auth.access.scope(name), frozenset({"trace"})
    return application.answers.question.answer(Query(text=text, scope=scope, top_k=SHOWN, include=include))


def read_features(answer: Answer) -> tuple[np.ndarray, np.ndarray]:
    """Features of an answer's sufficiency, and their weights."""
    assert answer.trace is not None
    assert answer.trace.sufficiency is not None
    traces = [answer.trace.sufficiency.features[name] for name in ANSWER_FEATURES]
    return np.array([one.value for one in traces]), np.array([one.weight for one in traces])


def list_right(answers: Mapping[str, Answer]) -> list[str]:
    """List questions whose evidence is among the first five, the most sufficient answers first."""
    right = [
        one.text
        for one in sample.questions()[:ASKED]
        if {passage for passage, _ in one.supporting}
        <= {passage.passage_id for passage in answers[one.text].passages[:EVIDENCE_PASSAGES]}
    ]
    return sorted(right, key=lambda text: -(answers[text].sufficiency or 0.0))


def test_corrections_leave_the_sufficiency_of_right_answers(application: Application, corpus: str) -> None:
    answers = {one.text: ask(application, corpus, one.text) for one in sample.questions()[:ASKED]}
    right = list_right(answers)
    assert fmean(answers[text].sufficiency or 0.0 for text in right[:RIGHT]) > 0.9
    for text in right[RIGHT : RIGHT + CORRECTIONS]:
        beyond = answers[text].passages[EVIDENCE_PASSAGES].passage_id
        evidence = min(state.sentences(application, corpus, beyond).values())
        state.judge(application, corpus, answers[text].query_id, [evidence], partial=True, wait=True)
    assert len(state.weight_rows(application, corpus, "sufficiency")) == CORRECTIONS

    after = [ask(application, corpus, text).sufficiency or 0.0 for text in right[:RIGHT]]
    assert fmean(after) >= 0.88
    assert min(after) >= 0.5
    undo.assert_verified(application, corpus)


@pytest.mark.parametrize("rate", [0.3, pytest.param(0.9, marks=pytest.mark.campaign)])
def test_the_level_stays_whatever_share_of_judged_answers_is_right(
    application: Application, corpus: str, rate: float
) -> None:
    """Evidence is drawn: one of the first five passages for a share ``rate`` of the questions, else the sixth."""
    draw = random.Random(f"{rate} {KINDS}")
    questions = [one.text for one in QUESTIONS]
    draw.shuffle(questions)
    answers = [ask_with_trace(application, corpus, text) for text in questions]
    for at, answer in enumerate(answers[:JUDGED]):
        is_sufficient = int((at + 1) * rate) > int(at * rate)
        place = draw.randrange(EVIDENCE_PASSAGES) if is_sufficient else EVIDENCE_PASSAGES
        evidence = min(state.sentences(application, corpus, answer.passages[place].passage_id).values())
        kind, judge = draw.choice(KINDS), f"user {at}"
        if kind == "thumb":
            rating, reason = ("up", None) if is_sufficient else ("down", draw.choice([None, "missing"]))
            state.judge(application, corpus, answer.query_id, rating=rating, reason=reason, judge=judge, wait=True)
        else:
            partial = kind == "partial"
            state.judge(application, corpus, answer.query_id, [evidence], partial=partial, judge=judge, wait=True)
    assert len(state.weight_rows(application, corpus, "sufficiency")) == JUDGED
    _, before = read_features(answers[0])
    _, weights = read_features(ask_with_trace(application, corpus, questions[0]))
    predicted = [probability(read_features(answer)[0], weights) for answer in answers]
    level = fmean(probability(read_features(answer)[0], before) for answer in answers)
    assert fmean(predicted) == pytest.approx(level, abs=0.05)
    undo.assert_verified(application, corpus)
