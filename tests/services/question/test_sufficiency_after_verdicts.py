"""A question's sufficiency does not fall after a verdict that supports evidence, while that evidence leads."""

import random
from typing import Any

import pytest

from engram.composition.container import Application
from engram.core.ranking.sufficiency import EVIDENCE_PASSAGES
from engram.services.question.answer import Answer
from engram.services.question.query import Query
from engram.services.verdict.verdict import NamedSentence
from engram.wings.local import sample
from engram.wings.local.sample.tour import question
from tests.support import state, undo

VERDICTS = 12


def ask(application: Application, name: str, text: str) -> Answer:
    return application.answers.question.answer(
        Query(text=text, scope=application.auth.access.scope(name), include=frozenset({"sentences"}))
    )


def gold(application: Application, name: str) -> list[int]:
    return [state.sentences(application, name, passage)[text] for passage, text in question().supporting]


@pytest.mark.parametrize("partial", [True, False])
def test_sufficiency_rises_on_the_tour(application: Application, corpus: str, partial: bool) -> None:
    text = question().text
    before = ask(application, corpus, text)
    state.judge(application, corpus, before.query_id, gold(application, corpus), partial=partial, wait=True)
    after = ask(application, corpus, text)
    assert {passage for passage, _ in question().supporting} <= list_first(after)
    assert before.sufficiency is not None
    assert after.sufficiency is not None
    assert after.sufficiency > before.sufficiency
    undo.assert_verified(application, corpus)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.campaign)])
def test_sufficiency_never_falls_after_a_supporting_verdict(
    application: Application, corpus: str, seed: int
) -> None:
    draw = random.Random(seed)
    chosen = draw.choice(sample.questions())
    evidence = [state.sentences(application, corpus, passage)[text] for passage, text in chosen.supporting]
    before, held = ask(application, corpus, chosen.text), 0
    for _ in range(VERDICTS):
        supported = give_verdict(application, corpus, before, evidence, draw)
        after = ask(application, corpus, chosen.text)
        if supported and supported <= list_first(after):
            held += 1
            assert after.sufficiency is not None
            assert before.sufficiency is not None
            assert after.sufficiency >= before.sufficiency
        before = after
    assert held, "no verdict supported evidence that led"
    undo.assert_verified(application, corpus)


def list_first(answer: Answer) -> set[str]:
    return {passage.passage_id for passage in answer.passages[:EVIDENCE_PASSAGES]}


def give_verdict(
    application: Application, name: str, answer: Answer, evidence: list[int], draw: random.Random
) -> set[str]:
    """Give a random verdict; the passages that it supports."""
    shown = {one.sentence_id: passage.passage_id for passage in answer.passages for one in passage.sentences}
    placed = shown | {
        sentence: passage
        for passage in {passage for passage, _ in question().supporting} | set(shown.values())
        for sentence in state.sentences(application, name, passage).values()
    }
    known = [one for one in evidence if one in placed]
    pool = sorted({*known, *draw.sample(sorted(shown), min(3, len(shown)))})
    supporting = draw.sample(pool, draw.randint(0, min(3, len(pool))))
    verdict: dict[str, Any] = {"judge": draw.choice(["ana", "ben", "cy"]), "wait": True}
    if draw.random() < 0.3:
        up = draw.random() < 0.6
        cited = [NamedSentence(one) for one in supporting]
        state.judge(application, name, answer.query_id, rating="up" if up else "down", cited=cited, **verdict)
        return {placed[one] for one in supporting} if up else set()
    rejected = [one for one in draw.sample(pool, min(2, len(pool))) if one not in supporting]
    state.judge(
        application,
        name,
        answer.query_id,
        supporting,
        rejected=rejected,
        partial=draw.random() < 0.5,
        confidence=draw.choice([1.0, 0.3]),
        **verdict,
    )
    return {placed[one] for one in supporting}
