"""A reranker among what ranks passages: its weight is learned, and without it nothing is lost."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from math import log
from typing import Any

import pytest

from engram.composition.container import Application, Servers
from engram.composition.parts import retrieval_services
from engram.config.settings import Settings
from engram.core.ranking.reranking import TRUST, RerankedScores
from engram.services.question.answer import Answer
from engram.services.question.query import Fallback, Query
from engram.services.question.reranking import PAUSE_SECONDS, PassageReranker
from engram.storage.corpus.passages import StoredPassage
from tests.support import state, undo
from tests.support.model_server import Failure, ModelServer

TOWNS = [f"Town{letter}" for letter in "abcdefghijkl"]
QUESTION = "Which river does Towna lie on?"
Start = Callable[..., AbstractContextManager[Application]]


def build_favouring(name: str) -> Callable[[str, Sequence[str]], list[float]]:
    """A reranker that is sure of one town's passage and denies the others."""
    return lambda _, texts: [0.99 if text.startswith(f"{name}\n") else 0.01 for text in texts]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(scores=build_favouring("Towng")) as running:
        yield running


@pytest.fixture
def start(
    own: Servers,
    settings: Settings,
    application: Application,
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Start:
    """Processes with the reranker of the server, if ``reranker_url`` is not None."""
    monkeypatch.setattr(retrieval_services, "RERANKER_SECONDS", 10.0)

    @contextmanager
    def process(**changed: Any) -> Iterator[Application]:
        stated: dict[str, Any] = {"reranker_url": server.root}
        services = Application(settings.model_copy(update=stated | changed), own, consumer="apart")
        services.models.embedder, services.models.language = (
            application.models.embedder,
            application.models.language,
        )
        try:
            yield services
        finally:
            services.close()

    return process


@pytest.fixture
def towns(start: Start, collection: str) -> str:
    with start() as services:
        passages = [
            {"id": town, "title": town, "text": f"{town} lies on the {town} River. {town} is old."}
            for town in TOWNS
        ]
        state.stage_passages(services, collection, *passages)
        services.jobs.runner.run_ready()
    return collection


def build_query(services: Application, name: str, **more: Any) -> Query:
    return Query(text=QUESTION, scope=services.auth.access.scope(name), **more)


def ask(services: Application, name: str, **more: Any) -> Answer:
    return services.answers.question.serve(build_query(services, name, **more))


def rerank(services: Application, name: str, **more: Any) -> RerankedScores | None:
    plan = services.retrieval.retrieve.plan(build_query(services, name, **more))
    return services.retrieval.retrieve.find(plan).ranking.reranked


def order(answer: Answer) -> list[str]:
    return [hit.passage_id for hit in answer.passages]


def scores(answer: Answer) -> dict[str, float]:
    return {hit.passage_id: hit.score for hit in answer.passages}


def trust(services: Application, name: str, **more: Any) -> float:
    reranked = rerank(services, name, **more)
    assert reranked is not None
    return reranked.trust


def judge(services: Application, name: str, town: str, count: int) -> list[int]:
    """Verdicts that support one town's passage."""
    events = []
    for number in range(count):
        query_id = ask(services, name, memory="off").query_id  # what is recalled teaches nothing
        supported = [min(state.sentences(services, name, town).values())]
        receipt = state.judge(services, name, query_id, supported, judge=f"judge-{number}")
        events.append(receipt.event.id)
    return events


def test_reranking_is_off_by_default(start: Start, server: ModelServer, towns: str) -> None:
    with start(reranker_url=None) as services:
        answer = ask(services, towns)
        assert rerank(services, towns) is None
    assert order(answer)[0] == "Towna"
    assert server.requests == []


def test_only_the_best_candidates_are_sent(
    start: Start, server: ModelServer, towns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrieval_services, "RERANKER_CANDIDATES", 4)
    with start() as services:
        ask(services, towns)
    assert {len(request.json["documents"]) for request in server.requests} == {4}


@pytest.mark.parametrize(
    "failure",
    [Failure(hang_seconds=30.0), Failure(status=500, body=b""), Failure(body=b"[]"), Failure(hang_up=True)],
    ids=["slow", "broken", "unusable", "hung up"],
)
def test_without_it_the_ranking_answers_as_if_it_were_off(
    start: Start, server: ModelServer, towns: str, failure: Failure, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(reranker_url=None) as services:
        plain = scores(ask(services, towns))
    server.queue(*[failure] * 2)
    monkeypatch.setattr(retrieval_services, "RERANKER_SECONDS", 0.2 if failure.hang_seconds else 10.0)
    with start() as services:
        answer = ask(services, towns)
    assert scores(answer) == plain
    assert [warning.type for warning in answer.warnings] == ["not-reranked"]
    assert "reranker" in answer.warnings[0].detail


def test_after_three_failures_it_is_left_alone_for_a_while(start: Start, server: ModelServer) -> None:
    now = 0.0
    passages = [(1, StoredPassage(1, "g", "Towng", "It lies on a river.", {}, "en"))]
    server.scores = None
    with start() as services:
        assert services.models.reranker is not None
        reranker = PassageReranker(services.models.reranker, candidates=8, seconds=10.0, clock=lambda: now)
        for _ in range(5):
            assert isinstance(reranker.rerank(QUESTION, passages), Fallback)
        assert len(server.requests) == 3
        server.scores = build_favouring("Towng")
        now = PAUSE_SECONDS
        assert reranker.rerank(QUESTION, passages) == {1: pytest.approx(log(0.99 / 0.01))}


def build_denying(name: str) -> Callable[[str, Sequence[str]], list[float]]:
    """A reranker that is sure of every passage but one town's."""
    return lambda _, texts: [0.01 if text.startswith(f"{name}\n") else 0.99 for text in texts]


@pytest.mark.parametrize(
    ("says", "sign"), [(build_favouring("Towng"), 1), (build_denying("Towng"), -1)], ids=["right", "wrong"]
)
def test_verdicts_teach_how_far_to_trust_it(
    start: Start, server: ModelServer, towns: str, says: Callable[[str, Sequence[str]], list[float]], sign: int
) -> None:
    server.scores = says
    with start() as services:
        for event in judge(services, towns, "Towng", 6):
            services.learning.learner.apply(services.auth.access.scope(towns).collection.id, [event])
        taught = trust(services, towns)
        assert sign * (taught - TRUST) > 0.01
        undo.assert_verified(services, towns)
        assert trust(services, towns, memory="off") == pytest.approx(TRUST)


def test_taking_verdicts_back_leaves_the_trust_to_the_bit(start: Start, towns: str) -> None:
    with start() as services:
        target = services.auth.access.scope(towns)
        events = judge(services, towns, "Towng", 4)
        for event in events[:2]:
            services.learning.learner.apply(target.collection.id, [event])
        before = state.rows(services, towns, "learned_weights", ("updated_at",))
        for event in events[2:]:
            services.learning.learner.apply(target.collection.id, [event])
        assert state.rows(services, towns, "learned_weights", ("updated_at",)) != before
        for event in events[2:]:
            services.learning.revocation.revoke(target, event)
        assert state.rows(services, towns, "learned_weights", ("updated_at",)) == before
        undo.assert_verified(services, towns)


def test_learned_weights_hold_with_and_without_a_reranker(start: Start, towns: str) -> None:
    with start(reranker_url=None) as services:
        for event in judge(services, towns, "Townc", 4):
            services.learning.learner.apply(services.auth.access.scope(towns).collection.id, [event])
        learned = state.rows(services, towns, "learned_weights", ("updated_at",))
        plain = scores(ask(services, towns))
        undo.assert_verified(services, towns)
    with start() as services:
        assert trust(services, towns) == pytest.approx(TRUST)
        undo.assert_verified(services, towns)
        for event in judge(services, towns, "Towng", 2):
            services.learning.learner.apply(services.auth.access.scope(towns).collection.id, [event])
        models = {row["model"] for row in state.rows(services, towns, "learned_weights")}
        assert "reranker" in models
    with start(reranker_url=None) as services:
        undo.assert_verified(services, towns)  # a belief in a reranker that is not there is left alone
        for event in list(state.event_statuses(services, towns))[4:]:
            services.learning.revocation.revoke(services.auth.access.scope(towns), event)
        assert scores(ask(services, towns)) == plain
        assert state.rows(services, towns, "learned_weights", ("updated_at",)) == learned


def test_another_reranker_is_trusted_from_the_start_again(start: Start, towns: str) -> None:
    with start() as services:
        for event in judge(services, towns, "Towng", 4):
            services.learning.learner.apply(services.auth.access.scope(towns).collection.id, [event])
        assert trust(services, towns) > TRUST + 0.01
    with start(reranker_model="another") as services:
        assert trust(services, towns) == pytest.approx(TRUST)
        undo.assert_verified(services, towns)


def test_no_transaction_is_open_while_it_reads(
    start: Start, application: Application, server: ModelServer, towns: str
) -> None:
    open_transactions: list[str] = []
    database = ""

    def rerank_and_record(question: str, texts: Sequence[str]) -> list[float]:
        with application.database.read() as reader:
            rows = reader.rows(
                "SELECT query FROM pg_stat_activity "
                "WHERE state LIKE 'idle in transaction%%' AND datname = %(name)s AND pid <> pg_backend_pid()",
                {"name": database},
            )
        open_transactions.extend(row.query for row in rows)
        return build_favouring("Towng")(question, texts)

    server.scores = rerank_and_record
    with start() as services:
        with services.database.read() as reader:
            database = reader.scalar("SELECT current_database()")
        ask(services, towns)
    assert server.requests
    assert open_transactions == []
