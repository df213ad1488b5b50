"""Answers in words, and the other uses of the LLM while a question is answered, over HTTP."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from engram.composition.container import Application
from tests.conftest import Ingest
from tests.support.modelled import ModelApplications
from tests.support.openai_server import Reply, keyword_handler
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"
CHAIN = "Into which sea flows the river of Marie Curie's birthplace?"


def kind(request: dict[str, Any]) -> str:
    system = request["messages"][0]["content"]
    return next(name for name in ("time_constraint", "supporting", "cited", "sufficient") if f'"{name}"' in system)


def test_an_answer_cites_sentences_of_its_retrieval(modelled: ModelApplications, curie: str) -> None:
    client = modelled(keyword_handler)
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
    assert modelled.held == [0]


def test_a_model_reads_what_stands_around_a_passage(
    modelled: ModelApplications, ingest: Ingest, collection: str
) -> None:
    first, second = "A sick employee may stay at home for three days.", "After that a doctor has to be seen."
    ingest(*({"id": f"leave#{n}", "document": "leave", "text": text} for n, text in enumerate((first, second))))
    read: list[str] = []

    def answer(request: dict[str, Any]) -> str:
        read.append(request["messages"][-1]["content"])
        return json.dumps({"answer": "Then see a doctor.", "cited": [2], "sufficient": True})

    client = modelled(answer)
    body = {"collection": collection, "query": "How long may a sick employee stay at home?", "top_k": 1}
    assert client.post("/answer", json=body).json()["citations"] == []
    answered = client.post("/answer", json=body | {"include": ["context"]}).json()
    assert [second in text for text in read[-1:]] == [True]
    assert second not in read[0]
    assert [(cite["passage_id"], cite["text"]) for cite in answered["citations"]] == [("leave#1", second)]


def test_no_evidence_is_no_answer_and_costs_no_call(
    modelled: ModelApplications, application: Application, collection: str
) -> None:
    application.corpus.ingest.receive(application.auth.access.prepare_opening(collection)).finish()
    answer = modelled(keyword_handler).post("/answer", json={"collection": collection, "query": QUESTION}).json()
    assert (answer["answer"], answer["sufficient"], answer["citations"]) == ("", False, [])
    assert modelled.held == []


def test_withheld_evidence_is_no_answer_and_costs_no_call(modelled: ModelApplications, curie: str) -> None:
    body = {"collection": curie, "query": QUESTION, "min_sufficiency": 1.0}
    answer = modelled(keyword_handler).post("/answer", json=body).json()
    assert (answer["answer"], answer["sufficient"], answer["citations"]) == ("", False, [])
    assert answer["retrieval"]["insufficient"] is True
    assert modelled.held == []


UNUSABLE: dict[str, Callable[[dict[str, Any]], str | Reply]] = {
    "a citation of what was not shown": lambda _: json.dumps({"answer": "x", "cited": [99], "sufficient": True}),
    "no JSON": lambda _: "Warsaw, of course.",
    "an error": lambda _: Reply("overloaded", status=500),
    "a refused key": lambda _: Reply("who are you", status=401),
    "no completion": lambda _: Reply(body=b"<html>"),
    "no reply": lambda _: Reply(hang_up=True),
}


@pytest.mark.parametrize("reason", UNUSABLE)
def test_failing_model_leaves_the_retrieved_passages(reason: str, modelled: ModelApplications, curie: str) -> None:
    response = modelled(UNUSABLE[reason]).post("/answer", json={"collection": curie, "query": QUESTION})
    assert response.status_code == 200
    answer = response.json()
    assert (answer["answer"], answer["sufficient"], answer["citations"]) == ("", False, [])
    assert answer["retrieval"]["passages"]
    (warning,) = answer["warnings"]
    assert warning["type"] == "not-answered"
    assert "\n" not in warning["detail"]


def test_without_an_endpoint_only_what_needs_one_is_refused(http: TestClient, curie: str) -> None:
    bodies = {"/answer": {"query": QUESTION}, "/query": {"query": QUESTION, "stop_rule": "llm"}}
    for path, body in bodies.items():
        response = http.post(path, json=body | {"collection": curie})
        assert response.status_code == 503
        assert response.json()["type"] == "urn:engram:problem:llm-not-configured"
        assert "ENGRAM_LLM_BASE_URL" in response.json()["detail"]
    assert http.post("/query", json={"collection": curie, "query": QUESTION}).status_code == 200


def test_the_model_decides_when_to_stop(modelled: ModelApplications, curie: str) -> None:
    """With 'llm' it is asked after each hop; when it says yes, no further hop is made."""
    body = {"collection": curie, "query": CHAIN, "stop_rule": "llm", "max_hops": 3}

    def answer_with(verdicts: list[bool]) -> dict[str, Any]:
        left = iter(verdicts)
        client = modelled(lambda _: json.dumps({"sufficient": next(left)}))
        answer: dict[str, Any] = client.post("/query", json=body).json()
        assert all(kind(request.json) == "sufficient" for request in modelled.server.requests)
        return answer

    first = answer_with([True])
    assert (first["hops"], first["stop_reason"], first["stop_rule"]) == (1, "sufficient", "llm")
    second = answer_with([False, True])
    assert (second["hops"], second["stop_reason"]) == (2, "sufficient")
    assert set(modelled.held) == {0}


@pytest.mark.wing("experiments")
def test_a_model_that_fails_while_deciding_does_not_stop_the_walk(modelled: ModelApplications, curie: str) -> None:
    """It goes on as if nobody had been asked, and nobody is asked again."""
    client = modelled(lambda _: "yes")
    body = {"collection": curie, "query": CHAIN}
    answer = client.post("/query", json=body | {"stop_rule": "llm"}).json()
    asked = len(modelled.server.requests)
    alone = client.post("/query", json=body | {"stop_rule": "none"}).json()
    assert [warning["type"] for warning in answer["warnings"]] == ["sufficiency-not-judged"]
    assert (answer["stop_rule"], alone["warnings"]) == ("none", [])
    for told in ("hops", "stop_reason", "passages"):
        assert answer[told] == alone[told]
    assert asked == len(modelled.server.requests) == 2  # once, and once more as it made no sense
    compared = client.post("/query/compare", json=body | {"stop_rule": "llm"}).json()
    assert [len(compared[side]["warnings"]) for side in "ab"] == [1, 1]


@pytest.mark.wing("published")
def test_expansion_falls_back_to_feedback_terms_when_the_model_fails(
    modelled: ModelApplications, curie: str
) -> None:
    client = modelled(lambda _: Reply("who are you", status=401))
    body = {"collection": curie, "query": QUESTION, "methods": ["prf", "hyde"]}
    alone = client.post("/expand", json=body | {"methods": ["prf"]}).json()
    answer = client.post("/expand", json=body).json()
    assert alone["expansions"]
    assert (answer["expansions"], alone["warnings"]) == (alone["expansions"], [])
    assert [warning["type"] for warning in answer["warnings"]] == ["not-widened"]
    assert answer["warnings"][0]["detail"].startswith("hyde: ")
    failed = client.post("/expand", json=body | {"methods": ["hyde"]})
    assert (failed.status_code, failed.json()["type"]) == (502, "urn:engram:problem:llm-failed")


def test_the_model_extracts_times_where_set(modelled: ModelApplications, curie: str) -> None:
    body = {"collection": curie, "query": "What did Marie Curie discover before the war?", "include": ["trace"]}
    client = modelled(lambda _: json.dumps({"time_constraint": "before the war"}), llm_time_extraction=True)
    assert client.post("/query", json=body).json()["trace"]["time_constraint"] == "before the war"
    assert len(modelled.held) == 1
    for given, expected in (("in 1898", "in 1898"), ("", None)):
        answer = client.post("/query", json=body | {"time_constraint": given}).json()
        assert answer["trace"]["time_constraint"] == expected
    assert len(modelled.held) == 1  # a constraint that is given is not asked for
    assert modelled.held == [0]


def test_the_model_extracts_no_times_unless_set(modelled: ModelApplications, curie: str) -> None:
    body = {"collection": curie, "query": "What did Marie Curie discover in 1898?", "include": ["trace"]}
    client = modelled(keyword_handler)
    assert "1898" in client.post("/query", json=body).json()["trace"]["time_constraint"]
    assert modelled.held == []


def test_a_corpus_gets_its_times_from_the_model_where_set(
    modelled: ModelApplications, collection: str, application: Application
) -> None:
    """No connection is held while a batch's sentences are asked about either."""
    client = modelled(keyword_handler, llm_time_extraction=True)
    passages = [{"id": "curie", "text": "Marie Curie discovered polonium in 1898. She lived in Paris."}]
    assert client.post(f"/passages?collection={collection}", json={"passages": passages}).status_code == 202
    client.app.state.services.jobs.runner.run_ready()  # type: ignore[attr-defined]
    assert {kind(request.json) for request in modelled.server.requests} == {"time_constraint"}
    assert set(modelled.held) == {0}
