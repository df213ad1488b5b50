"""Spreads of collections' questions: measured once for each version, on a sample, the same in every process."""

import numpy as np
import pytest

from engram.composition.container import Application
from engram.core.ranking.same_need import SameNeed
from engram.services.question import question_spreads
from engram.services.question.query import Query
from engram.services.question.question_spreads import QuestionSpreads
from engram.storage.corpus import current_vectors
from engram.storage.learning import question_samples, question_supports
from tests.support import state

JUDGED = (
    "Where was Marie Curie born?",
    "Which river flows through Warsaw?",
    "Who discovered polonium?",
    "What is the capital of Japan?",
)


@pytest.fixture
def taught(application: Application, curie: str) -> str:
    """A collection with four judged questions, each supported by a sentence of its own."""
    sentences = state.list_sentence_ids(application, curie)
    for place, text in enumerate(JUDGED):
        query_id = state.add_episode(application, curie, text, sentences)
        state.judge(application, curie, query_id, [sentences[place]], wait=True)
    return curie


def compare(
    application: Application, name: str, text: str, spreads: QuestionSpreads | None = None
) -> dict[str, SameNeed]:
    """Past question -> how sure it is that it has the need of ``text``."""
    plan = application.retrieval.retrieve.plan(Query(text=text, scope=application.auth.access.scope(name)))
    with application.database.snapshot() as reader:
        past = question_supports.recall(reader, plan.focus, 8)
        current = current_vectors.find_current(reader, plan.collection.id)
        assert current is not None
        needs = (spreads or QuestionSpreads()).compare(
            reader, plan.collection, current, text, plan.focus.vector, past
        )
    return {one.question: needs[one.question_id] for one in past}


def test_the_same_question_is_certain_and_others_are_not(application: Application, taught: str) -> None:
    needs = compare(application, taught, "  WHERE was Marie Curie born?")

    assert needs.keys() == set(JUDGED)
    assert needs[JUDGED[0]].probability == 1.0
    assert all(needs[text].probability < 0.2 for text in JUDGED[1:])


def test_a_paraphrase_is_nearer_than_other_questions(application: Application, taught: str) -> None:
    needs = compare(application, taught, "In what place was Marie Curie born?")

    assert max(needs, key=lambda text: needs[text].probability) == JUDGED[0]
    assert needs[JUDGED[0]].probability > 0.5
    assert needs[JUDGED[0]].words > 0.5
    assert needs[JUDGED[0]].nearness > max(needs[text].nearness for text in JUDGED[1:]) + 2


def test_questions_outside_the_sample_are_compared_alike(
    application: Application, taught: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = compare(application, taught, "Who found polonium?")
    monkeypatch.setattr(question_spreads, "SAMPLED_QUESTIONS", 2)
    sampled = compare(application, taught, "Who found polonium?")

    assert sampled.keys() == whole.keys()
    for text, need in whole.items():
        assert sampled[text].words == pytest.approx(need.words)
    assert max(sampled, key=lambda text: sampled[text].probability) == JUDGED[2]


def test_a_spread_is_measured_once_for_each_version(
    application: Application, taught: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[int] = []
    load = question_samples.load_question_sample
    monkeypatch.setattr(
        question_samples, "load_question_sample", lambda *given: loads.append(given[1]) or load(*given)
    )
    spreads = QuestionSpreads()
    for _ in range(3):
        compare(application, taught, JUDGED[0], spreads)
    assert len(loads) == 1

    sentences = state.list_sentence_ids(application, taught)
    query_id = state.add_episode(application, taught, "Which prize did she win?", sentences)
    event = state.judge(application, taught, query_id, [sentences[-1]], wait=True).event.id
    assert "Which prize did she win?" in compare(application, taught, JUDGED[0], spreads)
    assert len(loads) == 2

    application.revocation.revoke.revoke(application.auth.access.scope(taught), event)
    assert "Which prize did she win?" not in compare(application, taught, JUDGED[0], spreads)
    assert len(loads) == 3


def test_a_sample_estimates_how_many_questions_there_are(application: Application, taught: str) -> None:
    target = state.collection_id(application, taught)
    with application.database.read() as reader:
        whole = question_samples.load_question_sample(reader, target, 256)
        part = question_samples.load_question_sample(reader, target, 2)
    assert sorted(whole.texts) == sorted(JUDGED)
    assert whole.population == len(JUDGED)
    assert [len(evidence) for evidence in whole.evidence] == [1] * len(JUDGED)
    assert part.ids == whole.ids[:2]
    assert part.population >= 2
    assert part.vectors == pytest.approx(whole.vectors[:2])


def test_passages_are_sampled_evenly(application: Application, curie: str) -> None:
    target = state.collection_id(application, curie)
    with application.database.read() as reader:
        whole = question_samples.load_passage_sample(reader, target, 256)
        some = question_samples.load_passage_sample(reader, target, 2)
        none = question_samples.load_passage_sample(reader, 2**40, 2)
    assert len(whole) == application.auth.access.scope(curie).collection.passage_count
    assert 1 <= len(some) <= 2
    assert all((np.abs(whole - vector).max(axis=1) < 1e-6).any() for vector in some)
    assert none.shape == (0, 0)
