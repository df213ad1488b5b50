"""Spreads of collections' questions: measured once for each version, on a sample, the same in every process."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engram.composition.container import Application
from engram.core.ranking.question_memory import net_support
from engram.core.ranking.same_need import ComparedQuestions, QuestionSpread, SameNeed
from engram.services.question import question_spreads
from engram.services.question.query import Query
from engram.services.question.question_spreads import QuestionSpreads
from engram.services.question.recall import group_passages, judge_needs
from engram.storage.corpus import current_vectors
from engram.storage.learning import question_samples, question_supports
from engram.storage.learning.question_supports import PastSupport
from tests.conftest import Ingest
from tests.support import state

NEWEST = 2**62
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
    past, compared = compare_with_past(application, name, text, spreads)
    needs = {
        one.question: one.same_need
        for one in judge_needs(past, compared)
        if net_support(one.support, one.perplexity) > 0
    }
    return {text: need for text, need in needs.items() if need is not None}


def compare_with_past(
    application: Application, name: str, text: str, spreads: QuestionSpreads | None = None
) -> tuple[list[PastSupport], ComparedQuestions]:
    """Supports of past questions, and these questions compared with ``text``."""
    plan = application.retrieval.retrieve.plan(Query(text=text, scope=application.auth.access.scope(name)))
    with application.database.snapshot() as reader:
        past = question_supports.recall(reader, plan.focus, 8)
        current = current_vectors.find_current(reader, plan.collection.id)
        compared = (spreads or QuestionSpreads(lambda: application.models.language)).compare(
            reader, plan.collection, current, text, plan.focus.vector, past, group_passages(past)
        )
    assert compared is not None
    return past, compared


def find_spread(application: Application, name: str) -> QuestionSpread:
    """What the collection's judged questions show of each other now, measured anew."""
    with application.database.snapshot() as reader:
        collection = application.auth.access.scope(name).collection
        current = current_vectors.find_current(reader, collection.id)
        assert current is not None
        measured = QuestionSpreads(lambda: application.models.language).find(reader, collection, current)
    assert measured is not None
    return measured.spread


def test_the_same_question_is_certain_and_others_are_not(application: Application, taught: str) -> None:
    needs = compare(application, taught, "  WHERE was Marie Curie born?")

    assert needs.keys() == set(JUDGED)
    assert needs[JUDGED[0]].probability == 1.0
    assert all(needs[text].probability < 0.6 for text in JUDGED[1:])
    assert (needs[JUDGED[0]].supporters, needs[JUDGED[0]].others) == (1, 0)


def test_voted_passages_have_a_share_of_the_question_s_words(application: Application, taught: str) -> None:
    sentence = "Marie Curie was born in Warsaw."
    past, compared = compare_with_past(application, taught, sentence)
    shares = compared.word_shares

    assert shares.keys() == {one.passage_id for one in past}
    (born,) = {
        one.passage_id for one in past if one.question == JUDGED[0] and net_support(one.support, one.perplexity) > 0
    }
    assert max(shares, key=lambda passage: shares[passage]) == born
    assert 0.0 <= min(shares.values()) < 0.5 < shares[born] <= 1.0


def test_a_paraphrase_is_nearer_than_other_questions(application: Application, taught: str) -> None:
    needs = compare(application, taught, "In what place was Marie Curie born?")

    assert max(needs, key=lambda text: needs[text].probability) == JUDGED[0]
    assert needs[JUDGED[0]].probability > 0.5
    assert needs[JUDGED[0]].words > 0.5
    assert needs[JUDGED[0]].nearness > max(needs[text].nearness for text in JUDGED[1:]) + 2


def test_a_thumb_without_citations_votes_for_no_passage(application: Application, taught: str) -> None:
    text = "Who won two Nobel prizes?"
    scope = application.auth.access.scope(taught)
    answer = application.answers.question.answer(Query(text=text, scope=scope))
    state.judge(application, taught, answer.query_id, rating="up", wait=True)
    with application.database.snapshot() as reader:
        sample = question_samples.load_question_sample(reader, scope.collection, NEWEST, 8, 2)
    sizes = {text: len(passages) for text, passages in zip(sample.texts, sample.evidence, strict=True)}
    assert sizes == dict.fromkeys(JUDGED, 1) | {text: 0}

    needs = compare(application, taught, "Who got two Nobel prizes?")
    assert needs[text].supporters == 0


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
        question_samples, "load_question_sample", lambda *given: loads.append(given[1].id) or load(*given)
    )
    spreads = QuestionSpreads(lambda: application.models.language)
    for _ in range(3):
        compare(application, taught, JUDGED[0], spreads)
    assert len(loads) == 1

    sentences = state.list_sentence_ids(application, taught)
    query_id = state.add_episode(application, taught, "Which prize did she win?", sentences)
    event = state.judge(application, taught, query_id, [sentences[-1]], wait=True).event.id
    assert "Which prize did she win?" in compare(application, taught, JUDGED[0], spreads)
    assert len(loads) == 2

    application.learning.revocation.revoke(application.auth.access.scope(taught), event)
    assert "Which prize did she win?" not in compare(application, taught, JUDGED[0], spreads)
    assert len(loads) == 3


@pytest.fixture
def measured(application: Application, taught: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Whether a question has the spread measured anew, in a collection where it takes two verdicts."""
    monkeypatch.setattr(current_vectors, "RENEWED_SHARE", 0.5)
    monkeypatch.setattr(question_spreads, "RENEWED_SHARE", 2.0)
    with application.database.write() as writer:
        current_vectors.renew_question_version(writer, state.collection_id(application, taught))
    samples: list[question_samples.QuestionSample] = []
    load = question_samples.load_question_sample
    monkeypatch.setattr(
        question_samples, "load_question_sample", lambda *given: samples.append(load(*given)) or samples[-1]
    )
    spreads = QuestionSpreads(lambda: application.models.language)

    def ask() -> bool:
        before = len(samples)
        compare(application, taught, JUDGED[0], spreads)
        return len(samples) > before

    assert ask()
    return ask


def test_verdicts_have_questions_sampled_anew_once_they_changed_a_share(
    application: Application, taught: str, measured: Callable[[], bool]
) -> None:
    before = find_spread(application, taught)
    sentences = state.list_sentence_ids(application, taught)
    texts = ("Which prize did she win?", "Who was her husband?")
    queries = [state.add_episode(application, taught, text, sentences) for text in texts]
    state.judge(application, taught, queries[0], [sentences[-1]], wait=True)

    assert not measured()
    # It votes at once, and who measures only now does so on the same questions as before.
    assert texts[0] in compare(application, taught, JUDGED[0])
    assert find_spread(application, taught).units.mean == before.units.mean

    event = state.judge(application, taught, queries[1], [sentences[-1]], wait=True).event.id
    assert measured()
    assert find_spread(application, taught).units.mean != before.units.mean

    application.learning.revocation.revoke(application.auth.access.scope(taught), event)
    assert measured()
    assert texts[1] not in compare(application, taught, JUDGED[0])


@pytest.mark.parametrize("passage", ["curie", "new"])
@pytest.mark.parametrize("change", ["readers", "text", "deletion"])
def test_questions_are_sampled_anew_at_once_when_their_evidence_changes(
    application: Application, taught: str, measured: Callable[[], bool], ingest: Ingest, passage: str, change: str
) -> None:
    ingest({"id": "new", "text": "The Seine flows through Paris."}, into=taught)
    measured()
    assert not measured()
    scope = application.auth.access.scope(taught)
    if change == "readers":
        application.corpus.readers.set_of_passage(scope, passage, ["user:ana"])
    elif change == "text":
        ingest({"id": passage, "text": "Berlin lies on the Spree."}, into=taught)
    else:
        application.corpus.ingest.delete_passage(scope, passage)

    assert measured() is (passage == "curie")


@pytest.mark.parametrize("indexed", [[], ["question"]])
def test_a_sample_has_the_neighbours_of_its_questions(
    application: Application, taught: str, indexed: list[str]
) -> None:
    collection = replace(application.auth.access.scope(taught).collection, indexed=indexed)
    with application.database.read() as reader:
        whole = question_samples.load_question_sample(reader, collection, NEWEST, 256, 16)
        part = question_samples.load_question_sample(reader, collection, NEWEST, 1, 2)
    assert sorted(whole.texts) == sorted(JUDGED)
    assert [len(evidence) for evidence in whole.evidence] == [1] * len(JUDGED)
    pairs = set(zip(whole.rows.tolist(), whole.neighbours.tolist(), strict=True))
    assert pairs == {(one, other) for one in range(4) for other in range(4) if one != other}
    cosines = whole.vectors @ whole.vectors.T
    assert whole.similarity == pytest.approx(cosines[whole.rows, whole.neighbours], abs=1e-5)
    assert whole.size == 4

    assert part.ids[0] == whole.ids[0]
    nearest = np.argsort(-cosines[0])[1:3]
    assert sorted(part.ids[1:]) == sorted(whole.ids[place] for place in nearest)
    assert (part.rows.tolist(), part.neighbours.tolist()) == ([0, 0], [1, 2])
    assert part.size == 1
    assert part.vectors == pytest.approx(whole.vectors[[whole.ids.index(question) for question in part.ids]])


def load_asked(
    application: Application, name: str, limit: int = 9, indexed: Sequence[str] = ()
) -> question_samples.QuestionSample:
    collection = replace(application.auth.access.scope(name).collection, indexed=list(indexed))
    with application.database.read() as reader:
        return question_samples.load_asked_sample(reader, collection, NEWEST, limit, 2)


@pytest.mark.parametrize("indexed", [[], ["question"]])
def test_the_latest_unjudged_questions_before_the_newest_judged_one_are_sampled(
    application: Application, taught: str, indexed: list[str]
) -> None:
    sentences = state.list_sentence_ids(application, taught)
    for text in ("Who found radium?", "Where is the Vistula?", "Who found polonium?", "who found polonium"):
        state.add_episode(application, taught, text, sentences)
    assert load_asked(application, taught).size == 0

    query_id = state.add_episode(application, taught, "Which prize did she win?", sentences)
    state.judge(application, taught, query_id, [sentences[-1]], wait=True)
    asked, latest = (load_asked(application, taught, limit, indexed) for limit in (9, 2))

    assert latest.texts[:2] == ["who found polonium", "Where is the Vistula?"]
    assert asked.texts[:3] == [*latest.texts[:2], "Who found radium?"]
    assert asked.rows.tolist() == [place for place in range(3) for _ in range(2)]
    assert [len(asked.evidence[place]) for place in (0, 2, asked.neighbours[0])] == [0, 0, 1]
    cosines = (asked.vectors[asked.rows] * asked.vectors[asked.neighbours]).sum(axis=1)
    assert asked.similarity == pytest.approx(cosines, abs=1e-5)


def test_without_asked_questions_nothing_is_sampled(application: Application, curie: str) -> None:
    asked = load_asked(application, curie)
    assert (asked.size, len(asked.rows)) == (0, 0)


def teach_in_other_words(application: Application, name: str) -> int:
    """Judge two more wordings of what is judged already, by the same sentences; the event of the last verdict."""
    sentences = state.list_sentence_ids(application, name)
    for place, text in enumerate(("In what place was Marie Curie born?", "What river runs through Warsaw?")):
        query_id = state.add_episode(application, name, text, sentences)
        event = state.judge(application, name, query_id, [sentences[place]], wait=True).event.id
    return event


def test_wordings_of_one_need_teach_their_scatter_until_they_are_revoked(
    application: Application, taught: str
) -> None:
    asked = "Marie Curie, where was she born?"
    alone = find_spread(application, taught)
    event = teach_in_other_words(application, taught)
    both, needs = find_spread(application, taught), compare(application, taught, asked)
    application.learning.revocation.revoke(application.auth.access.scope(taught), event)
    one = find_spread(application, taught)

    # Two passages answer the first four questions, so they differ from each other in two directions.
    assert [spread.scatter.directions.shape[1] for spread in (alone, one, both)] == [2, 3, 4]
    assert both.scatter.stretch != 1.0
    assert needs["In what place was Marie Curie born?"].supporters == 2
    sentences = state.list_sentence_ids(application, taught)
    query_id = state.add_episode(application, taught, "What river runs through Warsaw?", sentences)
    state.judge(application, taught, query_id, [sentences[1]], wait=True)
    again = find_spread(application, taught)
    assert (again.scatter.directions == both.scatter.directions).all()
    assert again.weights.weights.tolist() == both.weights.weights.tolist()


def test_questions_outside_the_sample_are_placed_alike(
    application: Application, taught: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    teach_in_other_words(application, taught)
    monkeypatch.setattr(question_spreads, "SAMPLED_QUESTIONS", 1)
    monkeypatch.setattr(question_spreads, "NEIGHBOURS", 1)
    spreads = QuestionSpreads(lambda: application.models.language)
    with application.database.snapshot() as reader:
        collection = application.auth.access.scope(taught).collection
        current = current_vectors.find_current(reader, collection.id)
        assert current is not None
        measured = spreads.find(reader, collection, current)
        sample = question_samples.load_question_sample(reader, collection, NEWEST, 256, 16)
        assert measured is not None
        placed = measured.place(reader, collection, sample.ids)

    assert len(measured.rows) < len(sample.ids)
    expected = measured.spread.place(sample.vectors)
    assert placed.along == pytest.approx(expected.along)
    assert (placed.coordinates == expected.coordinates).all()


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


def test_terms_that_another_thread_let_go_are_read_again(
    application: Application, taught: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = "Marie Curie, where was she born?"
    before = compare(application, taught, asked)
    measure_shares = question_spreads.PassageTerms.measure_shares

    def empty_and_measure(self: question_spreads.PassageTerms, *arguments: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(question_spreads, "MOST_TERMS", 0)
            self._look_up(arguments[0], {"zebra"})
        return measure_shares(self, *arguments)

    monkeypatch.setattr(question_spreads.PassageTerms, "measure_shares", empty_and_measure)
    assert compare(application, taught, asked) == before
