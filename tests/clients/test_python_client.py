"""The Python client against a running service, and against connections that fail."""

import asyncio
import contextlib
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from engram.composition.container import Application
from engram_client import (
    AsyncEngram,
    BusyError,
    DeniedError,
    Engram,
    InvalidRequestError,
    JobFailedError,
    NotFoundError,
    ProblemError,
    RejectedLinesError,
    UnreachableError,
    _core,
)
from engram_client.requests import PulledScoreIn
from tests.conftest import CURIE
from tests.support.command import UNREACHABLE_URL
from tests.support.forks import ROOT

FRONTENDS = {
    "get_models", "post_chat", "get_vector_stores", "get_vector_store", "post_vector_store_search",
    "post_rerank", "post_rerank_v2", "post_retrieval",
    "get_knowledge", "get_knowledge_files", "post_knowledge_diff", "post_knowledge_cleanup",
    "post_knowledge_directory", "post_knowledge_reset", "post_file", "get_file_status",
}  # fmt: skip
"""Operations for the clients of others: OpenAI's, Cohere's, Jina's, Dify's, oikb."""
CALLED = {
    "delete_access_key": "revoke_access_key",
    "delete_collection": "delete_collection",
    "delete_fact_event": "revoke_fact_event",
    "delete_feedback": "revoke",
    "post_cancel": "cancel",
    "delete_passage": "delete_passage",
    "delete_reembed": "drop_vectors",
    "delete_session": "cancel_session",
    "delete_tenant": "remove_tenant",
    "delete_judge": "erase_judge",
    "delete_principal": "erase_principal",
    "delete_queries": "erase_queries",
    "delete_query": "erase_query",
    "get_erasures": "erasures",
    "get_access_keys": "access_keys",
    "get_audit": "audit",
    "get_collection": "get_collection",
    "get_collections": "collections",
    "get_entity": "entity",
    "get_events": "session_rounds",
    "get_fact": "fact",
    "get_feedback": "verdict",
    "get_gaps": "gaps",
    "get_generations": "generations",
    "get_health": "health",
    "get_job": "job",
    "get_jobs": "jobs",
    "get_judges": "judges",
    "get_pulled_scores": "pulled_scores",
    "get_readers": "explain_readers",
    "patch_passage": "set_readers",
    "delete_document": "delete_document",
    "get_documents": "documents",
    "patch_document": "change_document",
    "post_manifest": "compare_documents",
    "get_queries": "trace",
    "get_suggestions": "suggestions",
    "put_pulled_scores": "put_pulled_scores",
    "get_key": "passage_key",
    "get_keys": "keys",
    "get_learned": "learned",
    "get_lift": "lift",
    "get_own_access": "whoami",
    "get_own_quotas": "quotas",
    "get_passage": "passage",
    "get_passages": "passages",
    "get_predicates": "predicates",
    "get_preview": "without",
    "get_query": "episode",
    "get_readiness": "ready",
    "get_sentence_memory": "memory",
    "get_session": "session",
    "get_sessions": "sessions",
    "get_tuning": "tuning",
    "list_feedback": "verdicts",
    "patch_collection": "change_collection",
    "post_access_key": "make_access_key",
    "post_align": "align_entities",
    "post_answer": "answer",
    "post_compare": "compare",
    "post_count": "count_predicates",
    "post_evolve": "evolve",
    "post_expand": "expand",
    "post_facts": "state_facts",
    "post_facts_revise": "revise_facts",
    "post_facts_revoke": "revoke_facts",
    "post_facts_search": "search_facts",
    "post_feedback": "feedback",
    "post_graph_merge": "merge_graph",
    "post_documents": "ingest_document",
    "post_merge": "merge_entities",
    "post_passages": "ingest",
    "post_passage_count": "count_passages",
    "post_queries": "batch",
    "post_query": "query",
    "post_reembed": "reembed",
    "post_rekey": "rekey",
    "post_replay": "replay",
    "post_retry": "retry_many",
    "post_retry_one": "retry",
    "post_revoke": "revoke_many",
    "post_rollback": "rollback",
    "post_rotate_access_key": "rotate_access_key",
    "post_round": "more_rounds",
    "post_session_feedback": "session_feedback",
    "post_session": "start_session",
    "post_split": "split_entity",
    "post_tune": "tune",
    "put_judge": "set_judge",
    "put_predicate": "set_predicate",
    "put_tuning": "change_tuning",
}
"""Operation of the OpenAPI document -> the client's method."""


PEOPLE: dict[str, list[str]] = {"ana": ["user:ana"], "bo": ["user:bo", "group:staff"], "nobody": []}


@pytest.fixture
def engram(service: str, collection: str) -> Iterator[Engram]:
    with Engram(service, collection=collection) as client:
        yield client


def test_a_client_asks_for_somebody(service: str, collection: str, working: None) -> None:
    with Engram(service, collection=collection) as engram:
        engram.wait(
            engram.ingest(
                [
                    {"id": "hours", "text": "The office in Warsaw opens at eight."},
                    {"id": "wage", "text": "Marie Curie earns 7,000 crowns.", "readers": ["user:ana"]},
                ]
            ),
            poll_seconds=0.1,
        )
    question = "What does Marie Curie earn?"
    people = {name: Engram(service, collection=collection, on_behalf_of=asked) for name, asked in PEOPLE.items()}
    with people["ana"] as ana, people["bo"] as bo, people["nobody"] as nobody:
        found = ana.query(question, include=["context"])
        assert {one.passage_id for one in found.passages} == {"hours", "wage"}
        assert [one.passage_id for one in bo.query(question).passages] == ["hours"]
        assert [one.passage_id for one in bo.query(question, **{"as": PEOPLE["ana"]}).passages][:1] == ["wage"]
        (batched,) = nobody.batch([question])
        assert batched.answer is not None
        assert [one.passage_id for one in batched.answer.passages] == ["hours"]
        assert [one.count_passages().passages for one in (ana, bo, nobody)] == [2, 1, 1]
        assert [one.suggestions("mar") for one in (ana, bo, nobody)] == [["marie curie"], [], []]
        assert ana.passage("wage").id == "wage"
        for other in (bo, nobody):
            with pytest.raises(NotFoundError):
                other.passage("wage")
        said = ana.feedback(found.query_id, supporting_passages=["wage"], wait=True)
        assert said.status == "applied"
        assert ana.thumb(found, cited=[found.passages[0]]).feedback_id != said.feedback_id
        with pytest.raises(NotFoundError):
            bo.feedback(found.query_id, supporting_passages=["hours"])
        begun = ana.start_session(question, budget={"rounds": 1})
        assert list(ana.session_rounds(begun.session_id))
        assert [one.session_id for one in ana.sessions()] == [begun.session_id]
        assert list(bo.sessions()) == []


def client_of(answers: list[Any], asked: list[httpx.Request], **options: Any) -> Engram:
    """A client whose tries come out as ``answers`` say, each a response or an error."""

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        answer = answers[len(asked) - 1]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer[0], json=answer[1], headers=answer[2] if len(answer) > 2 else {})

    return Engram(transport=httpx.MockTransport(handle), **options)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waits that would have been, without waiting."""
    waits: list[float] = []
    monkeypatch.setattr("engram_client._sync.time", SimpleNamespace(sleep=waits.append))
    return waits


ACCEPTED = {
    "feedback_id": 1, "query_id": str(uuid4()), "collection": "c", "status": "pending", "judge": "anonymous",
    "received_at": "2026-05-01T00:00:00Z", "applied_at": None, "revoked_at": None, "error": None, "changes": None,
    "effect": None,
    "keys": None,
}  # fmt: skip


class TestService:
    @pytest.mark.usefixtures("working")
    def test_a_document_becomes_passages(self, engram: Engram) -> None:
        pdf = (ROOT / "tests/wings/importing/files/handbook.pdf").read_bytes()
        taken = engram.ingest_document("handbook.pdf", pdf)
        assert (taken.source, taken.passages) == ("handbook.pdf", 4)
        assert engram.wait(taken, poll_seconds=0.05).created == 4
        assert [one.metadata["page"] for one in engram.passages()] == [1, 1, 2, 3]

        (document,) = engram.documents()
        assert engram.change_document("handbook.pdf", folder="shelf").changed == 0
        listed = [{"source": "work/handbook.pdf", "digest": document.digest}]
        steps = engram.compare_documents(folder="shelf", documents=listed)
        assert [(one.before, one.source) for one in steps.moved] == [("handbook.pdf", "work/handbook.pdf")]
        engram.change_document("handbook.pdf", source="work/handbook.pdf")
        assert [one.source for one in engram.documents(prefix="work/")] == ["work/handbook.pdf"]
        engram.delete_document("work/handbook.pdf")
        assert list(engram.passages()) == []

    @pytest.mark.usefixtures("working")
    def test_ask_judge_ask_again(self, engram: Engram, collection: str) -> None:
        done = engram.wait(engram.ingest(CURIE), poll_seconds=0.05)
        assert (done.status, done.collection) == ("succeeded", collection)
        assert engram.get_collection().passage_count == len(CURIE)
        assert collection in [one.name for one in engram.collections()]

        found = engram.query("Where was Marie Curie born?", top_k=3, include=["trace"])
        assert found.passages
        assert found.trace is not None
        sentence = found.passages[0].sentences[0].sentence_id
        said = engram.feedback(found.query_id, supporting=[sentence], wait=True)
        assert (said.status, said.judge) == ("applied", "anonymous")
        assert said.changes
        again = engram.query("Where was Marie Curie born?")
        assert again.hops <= found.hops
        assert engram.memory(sentence).sentence_id == sentence
        assert [one.feedback_id for one in engram.verdicts()] == [said.feedback_id]
        assert [one.feedback_id for one in engram.verdicts(query_id=found.query_id)] == [said.feedback_id]
        assert list(engram.verdicts(query_id=again.query_id)) == []
        assert engram.episode(found.query_id).query_id == found.query_id
        one, two = engram.batch(["Where was Marie Curie born?", {"query": "?", "collection": "no-such-collection"}])
        assert one.answer is not None
        assert two.problem is not None
        assert two.problem.status == 404
        assert [passage.id for passage in engram.passages()] == sorted(line["id"] for line in CURIE)

        begun = engram.start_session("Where was the discoverer of radium born?", budget={"rounds": 2})
        rounds = list(engram.session_rounds(begun.session_id))
        session = engram.session(begun.session_id)
        assert ([one.number for one in rounds], session.status) == (
            [one.number for one in session.rounds],
            "stopped",
        )
        judged = engram.session_feedback(session.session_id, supporting=[sentence])
        assert judged.session_id == session.session_id
        assert engram.cancel_session(session.session_id).status == "stopped"
        assert [one.session_id for one in engram.sessions(status="stopped")] == [session.session_id]
        with pytest.raises(NotFoundError):
            list(engram.session_rounds(uuid4()))

        ana = ["user:ana"]
        hers = engram.start_session("Where was the discoverer of radium born?", **{"as": ana}).session_id
        assert [one.number for one in engram.session_rounds(hers, on_behalf_of=ana)] != []
        assert engram.session(hers, on_behalf_of=ana).session_id == hers
        assert [one.session_id for one in engram.sessions(on_behalf_of=ana)] == [hers]
        assert list(engram.sessions(on_behalf_of=[])) == []
        assert engram.cancel_session(hers, on_behalf_of=ana).status == "stopped"
        with pytest.raises(NotFoundError):
            engram.session(hers, on_behalf_of=[])

        assert engram.revoke(said.feedback_id).status == "revoked"
        engram.delete_passage(CURIE[0]["id"])
        with pytest.raises(NotFoundError) as missing:
            engram.passage(CURIE[0]["id"])
        assert (missing.value.status, missing.value.type) == (404, "urn:engram:problem:not-found")
        engram.delete_collection(collection)
        with pytest.raises(NotFoundError):
            engram.query("Where was Marie Curie born?")

    @pytest.mark.usefixtures("working")
    def test_the_same_with_await(self, service: str, collection: str) -> None:
        async def run_story() -> list[str]:
            async with AsyncEngram(service, collection=collection) as engram:
                await engram.wait(await engram.ingest(CURIE), poll_seconds=0.05)
                found = await asyncio.gather(*(engram.query("Who discovered radium?") for _ in range(4)))
                said = await engram.feedback(found[0].query_id, none_helped=True)
                assert [one.feedback_id async for one in engram.verdicts()] == [said.feedback_id]
                await engram.delete_collection(collection)
                return [one.query_id for one in found]

        assert len(set(asyncio.run(run_story()))) == 4

    @pytest.mark.usefixtures("working")
    def test_a_trace_finds_its_queries(self, engram: Engram) -> None:
        engram.wait(engram.ingest(CURIE))
        found = engram.query("Where was Marie Curie born?", trace_id="message-1")
        assert found.trace_id == "message-1"
        assert [query.query_id for query in engram.trace("message-1")] == [found.query_id]

    @pytest.mark.usefixtures("working")
    def test_pulled_scores_are_stored_and_listed(self, engram: Engram) -> None:
        engram.wait(engram.ingest(CURIE))
        score: PulledScoreIn = {
            "score_id": "a",
            "judge": "dify",
            "rating": "up",
            "digest": "0" * 64,
            "revision": 1,
            "scored_at": "2026-05-01T12:00:00Z",
            "queries": [],
        }
        assert engram.put_pulled_scores("dify", [score]).stored == 1
        assert [one.score_id for one in engram.pulled_scores("dify")] == ["a"]

    def test_refused_request_raises_with_details(self, engram: Engram) -> None:
        with pytest.raises(InvalidRequestError, match="say what helped") as refused:
            engram.feedback(uuid4(), complete=True)
        assert refused.value.errors

    def test_a_job_that_does_not_succeed_is_an_error(self, engram: Engram) -> None:
        job = engram.ingest(CURIE)
        with pytest.raises(TimeoutError, match="queued"):
            engram.wait(job, poll_seconds=0.05, timeout_seconds=0)
        assert engram.cancel(job.job_id).status == "cancelled"
        assert [one.job_id for one in engram.jobs().jobs] == [job.job_id]
        with pytest.raises(JobFailedError) as failed:
            engram.wait(job)
        assert failed.value.job.status == "cancelled"

    @pytest.mark.usefixtures("working")
    def test_a_job_whose_lines_were_refused_is_an_error_with_the_reasons(self, engram: Engram) -> None:
        job = engram.ingest([{"id": "kept", "text": "Titan is a moon."}, {"id": "x" * 2000, "text": "Too long."}])
        with pytest.raises(RejectedLinesError, match="1 of 2 lines were refused: line 2: ") as refused:
            engram.wait(job, poll_seconds=0.05)
        assert refused.value.job.status == "succeeded"
        assert engram.passage("kept").text == "Titan is a moon."

    def test_keys_are_made_used_and_revoked(self, service: str) -> None:
        with Engram(service) as engram:
            assert engram.whoami().name == "local"
            made = engram.make_access_key(name=f"asker-{uuid4().hex}", scopes={"*": ["query"]})
            with Engram(service, key=made.key) as limited:
                assert limited.whoami().scopes == {"*": ["query"]}
                with pytest.raises(DeniedError) as refused:
                    limited.evolve()
                assert refused.value.status == 403
            again = engram.rotate_access_key(made.key_id, grace_seconds=0)
            engram.revoke_access_key(again.key_id)
            assert {made.key_id, again.key_id} <= {key.key_id for key in engram.access_keys()}

    def test_unreachable_service_raises_unreachable_error(self) -> None:
        with pytest.raises(UnreachableError, match="out of reach"), Engram(UNREACHABLE_URL, retries=0) as engram:
            engram.health()


class TestRetries:
    def test_failed_request_is_retried_under_one_idempotency_key(self, at_once: list[float]) -> None:
        asked: list[httpx.Request] = []
        answers = [httpx.ConnectError("refused"), (503, {}, {"retry-after": "2"}), (202, ACCEPTED)]
        with client_of(answers, asked) as engram:
            assert engram.feedback(uuid4(), none_helped=True).feedback_id == 1
        assert len({request.headers["idempotency-key"] for request in asked}) == 1
        assert len({request.content for request in asked}) == 1
        assert at_once[1] == 2
        assert at_once[0] <= _core.FIRST_WAIT_SECONDS

    def test_it_gives_up(self, at_once: list[float]) -> None:
        asked: list[httpx.Request] = []
        with client_of([(429, {"title": "Busy"})] * 3, asked, retries=2) as engram, pytest.raises(BusyError):
            engram.query("x")
        assert (len(asked), len(at_once)) == (3, 2)

    def test_permanent_error_is_not_retried(self, at_once: list[float]) -> None:
        asked: list[httpx.Request] = []
        with client_of([(422, {"title": "Invalid"})], asked) as engram, pytest.raises(InvalidRequestError):
            engram.query("x")
        assert (len(asked), at_once) == (1, [])

    @pytest.mark.parametrize("body", [[], {"feedback_id": "one"}, "text"])
    def test_response_of_another_service_raises(self, body: Any) -> None:
        with client_of([(200, body)], []) as engram, pytest.raises(UnreachableError, match="as Engram does"):
            engram.feedback(uuid4(), none_helped=True)

    def test_a_refusal_without_a_document(self) -> None:
        transport = httpx.MockTransport(lambda _: httpx.Response(500, text="<html>"))
        with Engram(transport=transport) as engram, pytest.raises(ProblemError, match="HTTP 500"):
            engram.health()

    @pytest.mark.parametrize(
        ("given", "asked_url", "authorization"),
        [
            ({}, "http://engram.example:9000/readyz", "Bearer engram_env"),
            ({"url": "http://x", "key": "engram_given"}, "http://x/readyz", "Bearer engram_given"),
            ({"key": ""}, "http://engram.example:9000/readyz", None),
        ],
    )
    def test_the_environment_names_the_service_and_the_key(
        self, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], asked_url: str, authorization: str | None
    ) -> None:
        monkeypatch.setenv("ENGRAM_URL", "engram.example:9000/")
        monkeypatch.setenv("ENGRAM_ACCESS_KEY", " engram_env ")
        asked: list[httpx.Request] = []
        with client_of([(200, {}), (200, {})], asked, **given) as engram, contextlib.suppress(UnreachableError):
            engram.ready()
        assert (str(asked[0].url), asked[0].headers.get("authorization")) == (asked_url, authorization)

    def test_an_empty_environment_means_this_machine_without_a_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ENGRAM_URL", "")
        monkeypatch.setenv("ENGRAM_ACCESS_KEY", "")
        assert _core.service_url(None) == "http://127.0.0.1:8000"
        assert _core.access_key(None) is None

    def test_a_key_goes_with_every_request(self) -> None:
        asked: list[httpx.Request] = []
        with client_of([(200, {"status": "ok"})], asked, key="secret") as engram:
            engram.health()
        assert asked[0].headers["authorization"] == "Bearer secret"


class TestDocument:
    def test_every_operation_has_a_method(self) -> None:
        document = json.loads((ROOT / "openapi" / "openapi.json").read_text())
        operations = {o["operationId"] for path in document["paths"].values() for o in path.values()}
        assert operations - FRONTENDS == CALLED.keys()
        for method in CALLED.values():
            assert inspect.getdoc(getattr(Engram, method)) == inspect.getdoc(getattr(AsyncEngram, method))

    def test_it_imports_nothing_of_the_service(self) -> None:
        code = "import sys, engram_client; print([n for n in sys.modules if n in ('app', 'torch', 'pydantic')])"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path("/")
        )
        assert done.stdout == "[]\n"


def test_thumbs_send_what_is_cited(at_once: list[float]) -> None:
    asked: list[httpx.Request] = []
    query = "0b7c5f0e-3f0a-4a52-9c38-3c5d0c5f8a11"
    receipt = {
        "feedback_id": 1,
        "query_id": query,
        "collection": "notes",
        "status": "pending",
        "judge": "ana",
        "received_at": "2026-05-01T00:00:00Z",
        "applied_at": None,
        "revoked_at": None,
        "error": None,
        "changes": None,
        "effect": None,
        "keys": None,
    }
    engram = client_of([(503, {}, {"retry-after": "0"}), *[(202, receipt)] * 4], asked, collection="notes")
    passage, sentence = SimpleNamespace(passage_id="titan"), SimpleNamespace(sentence_id=7)
    engram.thumb(query, cited=[passage, sentence, "io", 8], judge="ana")
    engram.thumb(SimpleNamespace(query_id=UUID(query), collection="other"), up=False, reason="missing")
    engram.thumb(UUID(query), None, on_behalf_of=["user:zoe"], wait=True)
    bodies = [json.loads(request.content) for request in asked]
    rated = {"query_id": query, "collection": "notes", "wait": False}
    assert bodies == [
        *[rated | {"rating": "up", "cited": ["titan", 7, "io", 8], "judge": "ana"}] * 2,
        rated | {"rating": "down", "reason": "missing", "collection": "other"},
        rated | {"rating": None, "wait": True, "as": ["user:zoe"]},
    ]
    keys = [request.headers["idempotency-key"] for request in asked]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
    with pytest.raises(TypeError, match="neither a passage nor a sentence"):
        engram.thumb(query, cited=[SimpleNamespace()])


def test_a_thumb_counts(engram: Engram, application: Application) -> None:
    passages = [{"id": "titan", "text": "Titan is a moon of Saturn. It has lakes of liquid methane."}]
    job = engram.ingest(passages)
    application.jobs.runner.run_ready()
    engram.wait(job)
    found = engram.query("Which moon has lakes?")
    up = engram.thumb(found, cited=[found.passages[0]], wait=True)
    assert up.status == "applied"
    assert up.changes
    assert engram.thumb(found, None, wait=True).changes == []
    assert engram.verdict(up.feedback_id).status == "revoked"
