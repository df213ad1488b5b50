"""Sessions over HTTP, without an LLM: rounds by rules, rounds of the caller's, events, budgets, cancelling."""

import json
from typing import Any
from uuid import UUID

import pytest

from engram.composition.container import Application
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services import session_service as service
from tests.support import state
from tests.support.live_server import LiveServer
from tests.support.strict_client import TestClient

CHAIN = "Into which sea does the river that the birthplace of Marie Curie lies on flow?"
STEPS = {"planner": "pool", "top_k": 2, "stop": {"threshold": 1}}


def start(http: TestClient, collection: str, **body: Any) -> Any:
    response = http.post("/sessions", json={"collection": collection, "question": CHAIN, "wait": True} | body)
    assert response.status_code == 200, response.text
    return response.json()


def go_on(http: TestClient, session: Any, **body: Any) -> Any:
    path = f"/sessions/{session['session_id']}/rounds"
    return http.post(path, json={"collection": session["collection"], "wait": True} | body)


def events(text: str) -> list[tuple[str, Any]]:
    blocks = [block.split("\n") for block in text.strip().split("\n\n") if not block.startswith(":")]
    return [(kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for kind, _, data in blocks]


def test_a_session_asks_for_what_is_missing_until_nothing_is(
    http: TestClient, application: Application, curie: str
) -> None:
    session = start(http, curie, **STEPS)

    assert (session["status"], session["stop_reason"], session["planner"]) == ("stopped", "found", "pool")
    first, second = session["rounds"]
    assert (first["queries"], first["gap"]) == ([CHAIN], None)
    assert second["queries"] == ["into which sea does the river that Warsaw lies on flow"]
    assert second["gap"]["triple"][0] == "?1"
    assert session["cost"] == first["cost"] | {
        name: first["cost"][name] + second["cost"][name] for name in ("rounds", "passages", "seconds")
    } | {"seconds": session["cost"]["seconds"]}
    assert session["cost"]["rounds"] == 2
    texts = {
        text: sentence
        for one in ("curie", "warsaw", "vistula")
        for text, sentence in list_sentences(application, curie, one)
    }
    for sentence in session["evidence"]:
        assert texts[sentence["text"]] == sentence["sentence_id"]
    born = texts["Marie Curie was born in Warsaw in 1867."]
    assert session["notes"] == [
        {"kind": "binding", "text": "the birthplace of Marie Curie: Warsaw", "cites": [born], "round": 1}
    ]
    (filling,) = [one for one in session["evidence"] if one["gap"] is not None]
    assert (filling["sentence_id"], filling["gap"], filling["round"]) == (born, "?1 = Warsaw", 1)
    assert {one["passage_id"] for one in session["passages"]} == {"curie", "warsaw", "vistula"}
    read = http.get(f"/sessions/{session['session_id']}", params={"collection": curie})
    assert read.json() == session
    for one in session["rounds"]:
        kept = http.get(f"/queries/{one['query_ids'][0]}", params={"collection": curie}).json()
        assert kept["query"] == one["queries"][0]


def test_rfm_rag_searches_by_words_until_the_published_stop(http: TestClient, curie: str) -> None:
    body = {"planner": "rfm-rag", "top_k": 2}
    session = start(http, curie, **body, stop={"threshold": 0.01})
    (one,) = session["rounds"]
    assert (session["stop_reason"], one["queries"]) == ("sufficient", [CHAIN])
    assert one["said"]["published"]["entities"] == 1.0
    assert 0.0 < one["said"]["published"]["relevance"] < 1.0
    assert 0.01 < one["said"]["published"]["probability"] < 1.0
    kept = http.get(f"/queries/{one['query_ids'][0]}", params={"collection": curie}).json()
    assert (kept["strategy"], kept["memory"]) == ("lexical", "off")
    never = start(http, curie, **body, stop={"threshold": 1})
    assert never["stop_reason"] != "sufficient"
    first, second = never["rounds"][:2]
    assert first["gap"] is None
    assert second["gap"]["text"] == second["queries"][0]
    assert second["said"]["coverage"] < 1.0


def test_a_pool_that_covers_the_threshold_is_asked_no_further(http: TestClient, curie: str) -> None:
    body = {"planner": "rfm-rag", "top_k": 2, "stop": {"threshold": 1}}
    session = start(http, curie, **body, options={"coverage": 0.01})
    assert (session["stop_reason"], len(session["rounds"])) == ("covered", 1)
    assert session["covered"] > 0.01


def test_the_published_stop_and_search_are_of_rfm_rag_alone(http: TestClient, curie: str) -> None:
    for body, why in (
        ({"planner": "pool", "stop": {"rule": "published"}}, "only planner 'rfm-rag'"),
        ({"planner": "rfm-rag", "arm": {"strategy": "dense"}}, "it takes no arm"),
    ):
        refused = http.post("/sessions", json={"collection": curie, "question": CHAIN} | body)
        assert refused.status_code == 422
        assert why in refused.json()["detail"]


def list_sentences(application: Application, collection: str, passage: str) -> Any:
    return state.sentences(application, collection, passage).items()


def test_unawaited_session_is_a_job_followed_by_its_events(
    http: TestClient, application: Application, curie: str
) -> None:
    body = {"collection": curie, "question": CHAIN, **STEPS}
    key = {"idempotency-key": "a-session"}
    accepted = http.post("/sessions", json=body, headers=key)
    assert accepted.status_code == 202
    assert accepted.headers["location"] == accepted.json()["status_url"]
    assert http.post("/sessions", json=body, headers=key).json() == accepted.json()
    waiting = http.get(accepted.json()["status_url"]).json()
    assert (waiting["status"], waiting["rounds"]) == ("running", [])
    job = http.get(f"/jobs/{waiting['job_id']}", params={"collection": curie}).json()
    assert (job["kind"], job["status"]) == ("session", "queued")

    application.jobs.runner.run_ready()

    told = events(http.get(accepted.json()["events_url"]).text)
    assert [kind for kind, _ in told] == ["round", "round", "end"]
    end = told[-1][1]
    assert [data for kind, data in told if kind == "round"] == end["rounds"]
    assert end == http.get(accepted.json()["status_url"]).json()
    later = events(http.get(accepted.json()["events_url"], headers={"last-event-id": "1"}).text)
    assert [(kind, data.get("number")) for kind, data in later] == [("round", 2), ("end", None)]


def test_a_stream_goes_on_while_the_session_does(application: Application, http: TestClient, curie: str) -> None:
    accepted = http.post("/sessions", json={"collection": curie, "question": CHAIN, **STEPS}).json()
    seen: list[str] = []
    with LiveServer(http.app) as live:
        import httpx

        with httpx.stream("GET", live.url + accepted["events_url"], timeout=30) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            application.jobs.runner.run_ready()
            seen = [line for line in stream.iter_lines() if line.startswith("event")]
    assert seen == ["event: round", "event: round", "event: end"]


def test_a_caller_runs_rounds_of_its_own(http: TestClient, application: Application, curie: str) -> None:
    response = http.post("/sessions", json={"collection": curie, "question": CHAIN, "planner": "caller"})
    session = http.get(response.json()["status_url"]).json()
    assert (session["status"], session["rounds"], session["job_id"]) == ("stopped", [], None)
    assert go_on(http, session).status_code == 422

    asked = go_on(http, session, question="Where was Marie Curie born?").json()
    assert (asked["stop_reason"], asked["rounds"][0]["queries"]) == ("asked", ["Where was Marie Curie born?"])
    lies = "Warsaw lies on the Vistula."
    held = [one["text"] for one in asked["evidence"]]
    named = "Tokyo lies on Tokyo Bay." if lies in held else lies
    passage = "tokyo" if lies in held else "warsaw"
    brought = go_on(http, session, evidence=[{"passage_id": passage, "text": named}]).json()
    (one,) = [one for one in brought["evidence"] if one["text"] == named]
    assert (one["query"], one["round"]) == (None, 2)
    assert brought["rounds"][1]["queries"] == []
    again = go_on(http, session, evidence=[one["sentence_id"]]).json()
    assert [row["text"] for row in again["evidence"]] == [row["text"] for row in brought["evidence"]]
    spent = go_on(http, session, question="Which sea?")
    assert spent.status_code == 409
    assert spent.json()["detail"].endswith("has spent its budget of rounds.")


def test_only_sentences_of_passages_are_evidence(http: TestClient, curie: str) -> None:
    session = start(http, curie, **STEPS)
    for reference in (2**40, {"passage_id": "curie", "text": "Marie Curie was born on the moon."}):
        assert go_on(http, session, evidence=[reference]).status_code == 422


def test_continuation_without_input_runs_a_planner_round(http: TestClient, curie: str) -> None:
    session = start(http, curie, **STEPS | {"budget": {"rounds": 5}})
    assert len(session["rounds"]) == 2
    more = go_on(http, session).json()
    assert more["status"] == "stopped"
    assert len(more["rounds"]) in {2, 3}


def test_budgets_hold(http: TestClient, curie: str) -> None:
    for budget, reason in (
        ({"rounds": 1}, "rounds"),
        ({"passages": 1}, "passages"),
        ({"seconds": 1e-4}, "seconds"),
    ):
        session = start(http, curie, **STEPS | {"budget": budget})
        assert session["stop_reason"] == reason
        (name,) = budget
        if name != "seconds":
            assert session["cost"][name] == 1
        assert len(session["passages"]) <= 2
    assert session["rounds"][:1] == session["rounds"]


def test_a_cancelled_session_keeps_what_it_has_and_goes_no_further(
    http: TestClient, application: Application, curie: str
) -> None:
    accepted = http.post("/sessions", json={"collection": curie, "question": CHAIN}).json()
    path = f"/sessions/{accepted['session_id']}"
    cancelled = http.delete(path, params={"collection": curie}).json()
    assert (cancelled["status"], cancelled["stop_reason"]) == ("cancelled", "cancelled")
    application.jobs.runner.run_ready()
    assert http.get(path, params={"collection": curie}).json() == cancelled
    job = http.get(f"/jobs/{cancelled['job_id']}", params={"collection": curie}).json()
    assert job["status"] == "cancelled"
    assert go_on(http, cancelled, question="Which sea?").status_code == 409
    done = start(http, curie, **STEPS)
    ended = http.delete(f"/sessions/{done['session_id']}", params={"collection": curie})
    assert ended.json() == done


def test_a_job_that_is_cancelled_ends_its_session(http: TestClient, curie: str) -> None:
    accepted = http.post("/sessions", json={"collection": curie, "question": CHAIN}).json()
    job = http.get(accepted["status_url"]).json()["job_id"]
    assert http.post(f"/jobs/{job}/cancel", params={"collection": curie}).status_code == 200
    assert http.get(accepted["status_url"]).json()["status"] == "cancelled"


def test_session_options_that_need_an_llm_are_503_without_one(http: TestClient, curie: str) -> None:
    for body in ({"planner": "socratic"}, {"answer": True}, {"stop": {"rule": "llm"}}):
        response = http.post("/sessions", json={"collection": curie, "question": CHAIN} | body)
        assert (response.status_code, response.json()["type"].rsplit(":")[-1]) == (503, "llm-not-configured")


def test_auto_without_an_llm_goes_by_the_pool(http: TestClient, curie: str) -> None:
    session = start(http, curie, **STEPS | {"planner": "auto"})
    assert [one["action"] for one in session["rounds"]] == ["ask", "fill"]
    assert session["plan"]["planner"] == "pool"


def test_a_filter_and_an_arm_hold_in_every_round(http: TestClient, application: Application, curie: str) -> None:
    session = start(http, curie, **STEPS | {"arm": {"memory": "off", "strategy": "hybrid"}})
    for one in session["rounds"]:
        kept = http.get(f"/queries/{one['query_ids'][0]}", params={"collection": curie}).json()
        assert (kept["memory"], kept["strategy"]) == ("off", "hybrid")
    nothing = start(http, curie, filter={"topic": "none"})
    assert (nothing["passages"], nothing["evidence"]) == ([], [])


def test_two_waiting_clients_get_their_own_sessions(http: TestClient, application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie)
    first, second = (
        sessions_of(application).sessions.start(scope, service.NewSession(question=text, planner="pool"))
        for text in (CHAIN, "Where was Marie Curie born?")
    )
    assert sessions_of(application).sessions.wait(scope, second).stored.question == "Where was Marie Curie born?"
    assert sessions_of(application).sessions.wait(scope, first).stored.status == "stopped"
    assert isinstance(first, UUID)


def test_sessions_are_listed_by_pages_the_latest_first(http: TestClient, curie: str) -> None:
    stopped = [start(http, curie, planner="pool", budget={"rounds": 1}) for _ in range(2)]
    waiting = http.post("/sessions", json={"collection": curie, "question": CHAIN}).json()

    def list_sessions(**where: Any) -> Any:
        return http.get("/sessions", params={"collection": curie} | where).json()

    ids = [waiting["session_id"], *(one["session_id"] for one in reversed(stopped))]
    assert [one["session_id"] for one in list_sessions()["sessions"]] == ids
    first = list_sessions(limit=2)
    assert [one["session_id"] for one in first["sessions"]] == ids[:2]
    second = list_sessions(limit=1, before=first["next_before"])
    assert ([one["session_id"] for one in second["sessions"]], second["next_before"]) == (ids[2:], None)
    assert [one["session_id"] for one in list_sessions(status="running")["sessions"]] == ids[:1]
    (one,) = [one for one in list_sessions()["sessions"] if one["session_id"] == ids[1]]
    assert one == {key: stopped[1][key] for key in one if key != "rounds"} | {"rounds": 1}
    assert http.get("/sessions", params={"collection": curie, "status": "over"}).status_code == 422


@pytest.mark.parametrize("question", ["Who directed the film Casablanca?", "How tall was Marie Curie?"])
def test_unanswerable_session_stops_as_not_found(http: TestClient, curie: str, question: str) -> None:
    session = start(http, curie, planner="pool", question=question, learn=True)
    assert (session["status"], session["stop_reason"]) == ("stopped", "not_found")
    assert [one["queries"] for one in session["rounds"]] == [[question]]
    assert http.get("/feedback", params={"collection": curie}).json()["feedback"] == []
    further = go_on(http, session).json()
    assert (further["stop_reason"], len(further["rounds"])) == ("no_gap", 1)
