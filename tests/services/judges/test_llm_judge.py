"""The LLM judge against a real OpenAI-protocol endpoint."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from engram.composition.container import Application, Servers
from engram.composition.parts import learning_services
from engram.config.settings import Settings
from engram.context.errors import LlmError, LlmNotConfiguredError, NotFoundError
from engram.services.judges.llm_judge import EpisodeJudge
from engram.services.verdict.verdict import Verdict
from engram.storage.database import Database
from tests.conftest import Scoped
from tests.support import threads
from tests.support.constants import LLM_ATTEMPTS, set_constants
from tests.support.openai_server import OpenAiServer, Reply, keyword_handler
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"
OTHER_QUESTION = "Which sea does the Vistula flow into?"
Judging = Callable[..., EpisodeJudge]


@pytest.fixture
def judging(
    application: Application, settings: Settings, addresses: Servers, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Judging]:
    """Judges on the shared application, each with the endpoint it is given."""
    built: list[Application] = []
    monkeypatch.setattr(learning_services, "JUDGE_INTERVAL_SECONDS", 0.01)
    set_constants(monkeypatch, {LLM_ATTEMPTS: 1})

    def build(llm_base_url: str | None) -> EpisodeJudge:
        update = {"llm_base_url": llm_base_url, "judge_exam": False}
        built.append(Application(settings.model_copy(update=update), addresses))
        built[-1].models.embedder, built[-1].models.language = (
            application.models.embedder,
            application.models.language,
        )
        return built[-1].learning.llm_judge

    yield build
    for app in built:
        app.close()


def ask(http: TestClient, collection: str, *questions: str) -> list[str]:
    bodies = [{"collection": collection, "query": question} for question in questions]
    return [http.post("/query", json=body).json()["query_id"] for body in bodies]


def events(http: TestClient, collection: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = http.get("/feedback", params={"collection": collection}).json()["feedback"]
    return listed


def verdict(http: TestClient, collection: str, event: dict[str, Any]) -> dict[str, Any]:
    url = f"/feedback/{event['feedback_id']}"
    read: dict[str, Any] = http.get(url, params={"collection": collection}).json()["verdict"]
    return read


def test_each_episode_is_judged_exactly_once(
    http: TestClient, curie: str, judging: Judging, scoped: Scoped
) -> None:
    asked = ask(http, curie, QUESTION, OTHER_QUESTION)
    with OpenAiServer(keyword_handler) as server:
        assert judging(server.base_url).run(lambda: [scoped(curie)], once=True) == 2
        assert len(server.requests) == 2
        assert judging(server.base_url).run(lambda: [scoped(curie)], once=True) == 0
        assert len(server.requests) == 2
    given = events(http, curie)
    assert sorted(event["query_id"] for event in given) == sorted(asked)
    assert {event["judge"] for event in given} == {"llm-judge"}
    for event in given:
        read = verdict(http, curie, event)
        assert read["partial"]
        assert read["supports"]
        assert not set(read["supports"]) & set(read["rejects"])
        activated = http.get(f"/queries/{event['query_id']}", params={"collection": curie}).json()["trace"]["hops"]
        shown = {row["sentence_id"] for hop in activated for row in hop["sentences"]}
        assert set(read["supports"]) | set(read["rejects"]) == shown


@pytest.mark.parametrize("strategy", ["dense", "lexical", "hybrid"])
def test_all_passages_of_a_plain_search_are_judged(
    http: TestClient, curie: str, judging: Judging, strategy: str, scoped: Scoped
) -> None:
    body = {"collection": curie, "query": QUESTION, "arm": {"strategy": strategy}, "include": ["sentences"]}
    answer = http.post("/query", json=body | {"top_k": 2}).json()
    with OpenAiServer(keyword_handler) as server:
        assert judging(server.base_url).run(lambda: [scoped(curie)], once=True) == 1
    (event,) = events(http, curie)
    read = verdict(http, curie, event)
    assert event["query_id"] == answer["query_id"]
    assert read["supports"]
    assert read["retrieval_success"]
    found = {row["sentence_id"] for passage in answer["passages"] for row in passage["sentences"]}
    assert set(read["supports"]) | set(read["rejects"]) == found


@pytest.mark.wing("experiments")
def test_explored_passages_are_judged(http: TestClient, curie: str, judging: Judging, scoped: Scoped) -> None:
    setting = {"exploration": {"share": 1.0, "slots": 2, "seed": 1}}
    assert http.patch(f"/collections/{curie}", json=setting).status_code == 200
    answer = http.post("/query", json={"collection": curie, "query": QUESTION, "top_k": 3, "unit": "user"}).json()
    explored = [row["sentence_id"] for hit in answer["passages"] if hit["explored"] for row in hit["sentences"]]
    assert len(explored) >= 2
    with OpenAiServer(keyword_handler) as server:
        assert judging(server.base_url).run(lambda: [scoped(curie)], once=True) == 1
    (event,) = events(http, curie)
    read = verdict(http, curie, event)
    assert set(explored) <= {*read["supports"], *read["rejects"]}


def test_judged_queries_are_skipped(
    http: TestClient, application: Application, curie: str, judging: Judging, scoped: Scoped
) -> None:
    first, second = ask(http, curie, QUESTION, OTHER_QUESTION)
    body = {"collection": curie, "query_id": first}
    assert http.post("/feedback", json=body, headers={"idempotency-key": "mine"}).status_code == 202

    def judge_first(request: dict[str, Any]) -> str:
        """Another judge comes first while this one's model is thinking, and finds otherwise."""
        other = Verdict(query_id=third, scope=application.auth.access.scope(curie), partial=True, judge="llm-judge")
        application.learning.verdicts.accept(other, f"llm-judge:{third}")
        return keyword_handler(request)

    with OpenAiServer(keyword_handler) as server:
        assert judging(server.base_url).run(lambda: [scoped(curie)], once=True) == 1
    assert {event["query_id"] for event in events(http, curie)} == {first, second}
    (third,) = map(UUID, ask(http, curie, QUESTION))
    with OpenAiServer(judge_first) as server:
        assert judging(server.base_url).run(lambda: [scoped(curie)], once=True) == 0
    assert [event["query_id"] for event in events(http, curie)].count(str(third)) == 1


def test_old_episodes_are_left_alone(
    http: TestClient, curie: str, judging: Judging, scoped: Scoped, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning_services, "JUDGE_WINDOW_HOURS", 1e-9)
    ask(http, curie, QUESTION)
    with OpenAiServer(keyword_handler) as server:
        assert judging(server.base_url).run(lambda: [scoped(curie)], once=True) == 0
        assert server.requests == []


def test_empty_answer_is_judged_without_a_model_call(
    http: TestClient, application: Application, judging: Judging, scoped: Scoped
) -> None:
    """A question that activated no sentence has nothing to ask the model about."""
    application.corpus.ingest.receive(application.auth.access.prepare_opening("judge-empty")).finish()
    ask(http, "judge-empty", QUESTION)
    with OpenAiServer(keyword_handler) as server:
        assert judging(server.base_url).run(lambda: [scoped("judge-empty")], once=True) == 1
        assert server.requests == []
    (event,) = events(http, "judge-empty")
    assert verdict(http, "judge-empty", event)["retrieval_success"] is False
    assert http.delete("/collections/judge-empty").status_code == 204


def test_a_sentence_that_was_not_shown_cannot_be_supported(
    http: TestClient, curie: str, judging: Judging, scoped: Scoped
) -> None:
    ask(http, curie, QUESTION)
    with OpenAiServer(lambda _: json.dumps({"supporting": [99], "confidence": 1.0})) as server:
        with pytest.raises(LlmError, match="99 is not a sentence number"):
            judging(server.base_url).run(lambda: [scoped(curie)], once=True)
        assert len(server.requests) == 2  # asked once more, with the reason
    assert events(http, curie) == []


def test_without_an_endpoint_or_a_collection(curie: str, judging: Judging, scoped: Scoped) -> None:
    with pytest.raises(LlmNotConfiguredError, match="ENGRAM_LLM_BASE_URL"):
        judging(None).run(lambda: [scoped(curie)], once=True)
    with OpenAiServer(keyword_handler) as server, pytest.raises(NotFoundError):
        judging(server.base_url).run(lambda: [scoped("no-such-collection")], once=True)


def test_no_connection_is_held_while_the_model_thinks(
    http: TestClient, curie: str, settings: Settings, addresses: Servers, scoped: Scoped
) -> None:
    ask(http, curie, QUESTION)
    held: list[int] = []

    def answer_and_record(request: dict[str, Any]) -> str:
        held.append(count_checked_out(app.database))
        return keyword_handler(request)

    with OpenAiServer(answer_and_record) as server:
        app = Application(
            settings.model_copy(update={"llm_base_url": server.base_url, "judge_exam": False}), addresses
        )
        assert app.learning.llm_judge.run(lambda: [scoped(curie)], once=True) == 1
        app.close()
    assert held == [0]


def count_checked_out(database: Database) -> int:
    return sum(pool.in_use for pool in database.pools().values())


def test_a_failing_episode_does_not_hold_up_the_others(
    http: TestClient, curie: str, judging: Judging, scoped: Scoped
) -> None:
    """It waits behind them, is tried again, and the judge goes on until it is stopped."""
    failing, fine = ask(http, curie, QUESTION, OTHER_QUESTION)
    mended = threading.Event()

    def fail_until_mended(request: dict[str, Any]) -> str | Reply:
        if QUESTION in request["messages"][1]["content"] and not mended.is_set():
            return Reply("out of memory", status=500)
        return keyword_handler(request)

    with OpenAiServer(fail_until_mended) as server:
        service = judging(server.base_url)
        thread = threads.make_thread(service.run, lambda: [scoped(curie)], once=False)
        thread.start()
        try:
            wait_for(lambda: {event["query_id"] for event in events(http, curie)} == {fine})
            mended.set()
            wait_for(lambda: {event["query_id"] for event in events(http, curie)} == {failing, fine})
        finally:
            service.stop()
            thread.join()


def test_once_goes_on_behind_an_episode_that_fails(
    http: TestClient, curie: str, judging: Judging, scoped: Scoped
) -> None:
    """Each run is a new process as far as the judge knows: what failed is read from the database."""
    refused, fine = ask(http, curie, QUESTION, OTHER_QUESTION)

    def refuse_question(request: dict[str, Any]) -> str | Reply:
        if QUESTION in request["messages"][1]["content"]:
            return Reply("The prompt was filtered.", status=400)
        return keyword_handler(request)

    with OpenAiServer(refuse_question) as server:
        with pytest.raises(LlmError, match=r"^1 episodes judged; 1 could not be.*The prompt was filtered"):
            judging(server.base_url).run(lambda: [scoped(curie)], once=True)
        assert [event["query_id"] for event in events(http, curie)] == [fine]
        (later,) = ask(http, curie, OTHER_QUESTION)
        before = len(server.requests)
        with pytest.raises(LlmError, match=r"^1 episodes judged; 1 could not be"):
            judging(server.base_url).run(lambda: [scoped(curie)], once=True)
        asked_for = [request.json["messages"][1]["content"] for request in server.requests[before:]]
        assert [QUESTION in text for text in asked_for] == [False, True]  # what failed before comes last
        with pytest.raises(LlmError, match=r"^0 episodes judged; 1 could not be"):
            judging(server.base_url).run(lambda: [scoped(curie)], once=True)
        before = len(server.requests)
        assert judging(server.base_url).run(lambda: [scoped(curie)], once=True) == 0  # refused often enough
        assert len(server.requests) == before
    assert {event["query_id"] for event in events(http, curie)} == {fine, later}
    with OpenAiServer(keyword_handler) as server:
        assert judging(server.base_url).run(lambda: [scoped(curie)], once=True) == 0
    assert refused not in {event["query_id"] for event in events(http, curie)}


def test_an_endpoint_that_is_away_costs_no_episode_its_tries(
    http: TestClient, curie: str, judging: Judging, scoped: Scoped
) -> None:
    asked = ask(http, curie, *[f"{QUESTION} {number}" for number in range(5)])
    with OpenAiServer(lambda _: Reply("overloaded", status=503)) as server:
        for run in range(1, 5):
            with pytest.raises(LlmError, match=r"^0 episodes judged; 3 could not be.*overloaded"):
                judging(server.base_url).run(lambda: [scoped(curie)], once=True)
            assert len(server.requests) == 3 * run  # three in a row, and the rest waits for another run
    with OpenAiServer(keyword_handler) as server:
        assert judging(server.base_url).run(lambda: [scoped(curie)], once=True) == 5
    assert {event["query_id"] for event in events(http, curie)} == set(asked)


def wait_for(reached: Callable[[], bool]) -> None:
    waiting = threading.Event()
    for _ in range(1_500):
        if reached():
            return
        waiting.wait(0.02)
    pytest.fail("it did not happen")


def test_deleted_evidence_is_not_shown_to_the_judge(
    http: TestClient, application: Application, curie: str, judging: Judging, scoped: Scoped
) -> None:
    (asked,) = ask(http, curie, QUESTION)
    application.corpus.ingest.delete_passage(application.auth.access.scope(curie), "curie")
    with OpenAiServer(keyword_handler) as server:
        assert judging(server.base_url).run(lambda: [scoped(curie)], once=True) == 1
        assert all(
            "Marie Curie was born" not in request.json["messages"][1]["content"] for request in server.requests
        )
    (event,) = events(http, curie)
    assert event["query_id"] == asked


@pytest.mark.wing("sessions")
def test_only_a_sessions_own_question_is_judged(
    http: TestClient, curie: str, judging: Judging, scoped: Scoped
) -> None:
    """Its sub-questions were asked by rules; a caller may ask its own question as a round's."""
    body = {"collection": curie, "question": OTHER_QUESTION, "planner": "caller", "wait": True}
    session = http.post("/sessions", json=body).json()
    rounds = f"/sessions/{session['session_id']}/rounds"
    for question in (OTHER_QUESTION, "the capital of Poland"):
        asked = http.post(rounds, json={"collection": curie, "wait": True, "question": question})
        assert asked.status_code == 200, asked.text
    own, _ = (one["query_ids"][0] for one in asked.json()["rounds"])
    with OpenAiServer(keyword_handler) as server:
        assert judging(server.base_url).run(lambda: [scoped(curie)], once=True) == 1
    assert [event["query_id"] for event in events(http, curie)] == [own]
