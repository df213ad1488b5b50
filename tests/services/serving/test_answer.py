"""Answers in words, and the other uses of the LLM while a question is answered, over HTTP."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.composition import Application, Servers
from app.main import create_app
from app.settings import Settings
from tests.support.openai_server import Handler, OpenAiServer, Reply, keyword_handler

QUESTION = "Where was Marie Curie born?"
CHAIN = "Into which sea flows the river of Marie Curie's birthplace?"


class Asking:
    """A client of an application whose LLM is ``handler``; ``held`` counts connections held during each call."""

    def __init__(self, settings: Settings, addresses: Servers, shared: Application) -> None:
        self._settings, self._addresses, self._shared = settings, addresses, shared
        self.held: list[int] = []
        self.server: OpenAiServer
        self._open = ExitStack()

    def __call__(self, handler: Handler, **changed: Any) -> TestClient:
        def watched(request: dict[str, Any]) -> str | Reply:
            engines = (app.database._readers, app.database._writers)
            self.held.append(sum(engine.pool.checkedout() for engine in engines))  # type: ignore[attr-defined]
            return handler(request)

        self.server = self._open.enter_context(OpenAiServer(watched))
        update = {"llm_base_url": self.server.base_url, "llm_max_attempts": 1} | changed
        app = Application(self._settings.model_copy(update=update), self._addresses)
        app.__dict__.update(embedder=self._shared.embedder, language=self._shared.language)
        self._open.callback(app.close)
        return TestClient(create_app(app), raise_server_exceptions=False)

    def close(self) -> None:
        self._open.close()


@pytest.fixture
def asking(settings: Settings, addresses: Servers, application: Application) -> Iterator[Asking]:
    made = Asking(settings, addresses, application)
    yield made
    made.close()


def kind(request: dict[str, Any]) -> str:
    system = request["messages"][0]["content"]
    return next(name for name in ("time_constraint", "supporting", "cited", "sufficient") if f'"{name}"' in system)


def test_an_answer_cites_sentences_of_its_retrieval(asking: Asking, curie: str) -> None:
    client = asking(keyword_handler)
    response = client.post("/answer", json={"collection": curie, "query": QUESTION, "top_k": 2})
    assert response.status_code == 200, response.text
    answer = response.json()
    assert "Warsaw" in answer["answer"]
    shown = {
        (sentence["sentence_id"], hit["passage_id"], sentence["text"])
        for hit in answer["retrieval"]["passages"]
        for sentence in hit["sentences"]
    }
    cited = {(cite["sentence_id"], cite["passage_id"], cite["text"]) for cite in answer["citations"]}
    assert cited
    assert cited <= shown
    episode = client.get(f"/queries/{answer['retrieval']['query_id']}", params={"collection": curie})
    assert episode.json()["query"] == QUESTION
    assert asking.held == [0]


def test_no_evidence_is_no_answer_and_costs_no_call(
    asking: Asking, application: Application, collection: str
) -> None:
    application.ingest.receive(application.access.opening(collection)).finish()
    answer = asking(keyword_handler).post("/answer", json={"collection": collection, "query": QUESTION}).json()
    assert (answer["answer"], answer["sufficient"], answer["citations"]) == ("", False, [])
    assert asking.held == []


def test_withheld_evidence_is_no_answer_and_costs_no_call(asking: Asking, curie: str) -> None:
    body = {"collection": curie, "query": QUESTION, "min_sufficiency": 1.0}
    answer = asking(keyword_handler).post("/answer", json=body).json()
    assert (answer["answer"], answer["sufficient"], answer["citations"]) == ("", False, [])
    assert answer["retrieval"]["insufficient"] is True
    assert asking.held == []


UNUSABLE: dict[str, Callable[[dict[str, Any]], str | Reply]] = {
    "a citation of what was not shown": lambda _: json.dumps({"answer": "x", "cited": [99], "sufficient": True}),
    "no JSON": lambda _: "Warsaw, of course.",
    "an error": lambda _: Reply("overloaded", status=500),
    "a refused key": lambda _: Reply("who are you", status=401),
    "no completion": lambda _: Reply(body=b"<html>"),
    "no reply": lambda _: Reply(hang_up=True),
}


@pytest.mark.parametrize("reason", UNUSABLE)
def test_of_a_failing_model_what_was_retrieved_is_left(reason: str, asking: Asking, curie: str) -> None:
    response = asking(UNUSABLE[reason]).post("/answer", json={"collection": curie, "query": QUESTION})
    assert response.status_code == 200
    answer = response.json()
    assert (answer["answer"], answer["sufficient"], answer["citations"]) == ("", False, [])
    assert answer["retrieval"]["passages"]
    (warning,) = answer["warnings"]
    assert warning["type"] == "not-answered"
    assert "\n" not in warning["detail"]


def test_without_an_endpoint_only_what_needs_one_is_refused(http: TestClient, curie: str) -> None:
    bodies = {"/answer": {"query": QUESTION}, "/query": {"query": QUESTION, "sufficiency": "llm"}}
    for path, body in bodies.items():
        response = http.post(path, json=body | {"collection": curie})
        assert response.status_code == 503
        assert response.json()["type"] == "urn:engram:problem:llm-not-configured"
        assert "ENGRAM_LLM_BASE_URL" in response.json()["detail"]
    assert http.post("/query", json={"collection": curie, "query": QUESTION}).status_code == 200


def test_the_model_decides_when_to_stop(asking: Asking, curie: str) -> None:
    """With 'llm' it is asked after each hop; when it says yes, no further hop is made."""
    body = {"collection": curie, "query": CHAIN, "sufficiency": "llm", "max_hops": 3}

    def answering(verdicts: list[bool]) -> dict[str, Any]:
        left = iter(verdicts)
        client = asking(lambda _: json.dumps({"sufficient": next(left)}))
        answer: dict[str, Any] = client.post("/query", json=body).json()
        assert all(kind(request.json) == "sufficient" for request in asking.server.requests)
        return answer

    first = answering([True])
    assert (first["hops"], first["stop_reason"], first["sufficiency"]) == (1, "sufficient", "llm")
    second = answering([False, True])
    assert (second["hops"], second["stop_reason"]) == (2, "sufficient")
    assert set(asking.held) == {0}


def test_a_model_that_fails_while_deciding_does_not_stop_the_walk(asking: Asking, curie: str) -> None:
    """It goes on as if nobody had been asked, and nobody is asked again."""
    client = asking(lambda _: "yes")
    body = {"collection": curie, "query": CHAIN}
    answer = client.post("/query", json=body | {"sufficiency": "llm"}).json()
    asked = len(asking.server.requests)
    alone = client.post("/query", json=body | {"sufficiency": "none"}).json()
    assert [warning["type"] for warning in answer["warnings"]] == ["sufficiency-not-judged"]
    assert (answer["sufficiency"], alone["warnings"]) == ("none", [])
    for told in ("hops", "stop_reason", "passages"):
        assert answer[told] == alone[told]
    assert asked == len(asking.server.requests) == 2  # once, and once more as it made no sense
    compared = client.post("/query/compare", json=body | {"sufficiency": "llm"}).json()
    assert [len(compared[side]["warnings"]) for side in "ab"] == [1, 1]


def test_what_a_failing_model_cannot_widen_the_passages_do(asking: Asking, curie: str) -> None:
    client = asking(lambda _: Reply("who are you", status=401))
    body = {"collection": curie, "query": QUESTION, "methods": ["prf", "hyde"]}
    alone = client.post("/expand", json=body | {"methods": ["prf"]}).json()
    answer = client.post("/expand", json=body).json()
    assert alone["expansions"]
    assert (answer["expansions"], alone["warnings"]) == (alone["expansions"], [])
    assert [warning["type"] for warning in answer["warnings"]] == ["not-widened"]
    assert answer["warnings"][0]["detail"].startswith("hyde: ")
    failed = client.post("/expand", json=body | {"methods": ["hyde"]})
    assert (failed.status_code, failed.json()["type"]) == (502, "urn:engram:problem:llm-failed")


def test_the_model_extracts_times_where_set(asking: Asking, curie: str) -> None:
    body = {"collection": curie, "query": "What did Marie Curie discover before the war?", "include": ["trace"]}
    client = asking(lambda _: json.dumps({"time_constraint": "before the war"}), llm_time_extraction=True)
    assert client.post("/query", json=body).json()["trace"]["time_constraint"] == "before the war"
    assert len(asking.held) == 1
    for given, expected in (("in 1898", "in 1898"), ("", None)):
        answer = client.post("/query", json=body | {"time_constraint": given}).json()
        assert answer["trace"]["time_constraint"] == expected
    assert len(asking.held) == 1  # a constraint that is given is not asked for
    assert asking.held == [0]


def test_the_model_extracts_no_times_unless_set(asking: Asking, curie: str) -> None:
    body = {"collection": curie, "query": "What did Marie Curie discover in 1898?", "include": ["trace"]}
    client = asking(keyword_handler)
    assert "1898" in client.post("/query", json=body).json()["trace"]["time_constraint"]
    assert asking.held == []


def test_a_corpus_gets_its_times_from_the_model_where_set(
    asking: Asking, collection: str, application: Application
) -> None:
    """No connection is held while a batch's sentences are asked about either."""
    client = asking(keyword_handler, llm_time_extraction=True)
    passages = [{"id": "curie", "text": "Marie Curie discovered polonium in 1898. She lived in Paris."}]
    assert client.post(f"/passages?collection={collection}", json={"passages": passages}).status_code == 202
    client.app.state.services.runner.run_ready()  # type: ignore[attr-defined]
    assert {kind(request.json) for request in asking.server.requests} == {"time_constraint"}
    assert set(asking.held) == {0}
