"""Facts over HTTP: two sources disagree, a verdict decides, the past stays askable, and words serve as well."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from engram.composition.container import Application
from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from tests.api.conftest import Variant
from tests.conftest import Ingest
from tests.support import past
from tests.support.constants import LLM_ATTEMPTS, set_constants
from tests.support.openai_server import OpenAiServer, Reply
from tests.support.strict_client import TestClient


@pytest.fixture
def there(http: TestClient, ingest: Ingest, collection: str) -> str:
    """An empty collection, but for a passage that says nothing of note."""
    ingest({"id": "river", "text": "The river flows."})
    return collection


def send(http: TestClient, method: str, path: str, key: str = "", **body: Any) -> Any:
    response = http.request(method, path, json=body, headers={"idempotency-key": key} if key else {})
    assert response.status_code == 200, response.text
    return response.json()


def state(http: TestClient, collection: str, source: str, object_: str, **more: Any) -> dict[str, Any]:
    fact = {"subject": "Marie Curie", "predicate": "place of birth", "object": object_} | more
    found = send(http, "POST", "/facts", collection=collection, source=source, facts=[fact])
    one: dict[str, Any] = found["facts"][0]
    return one


def test_two_sources_disagree_and_a_verdict_decides(http: TestClient, application: Application, there: str) -> None:
    send(http, "PUT", "/predicates", collection=there, predicate="Place of Birth", functional=True)
    warsaw, paris = state(http, there, "a", "Warsaw"), state(http, there, "b", "Paris")
    moment = past.now(application).isoformat()
    judged = send(
        http,
        "POST",
        "/facts/revise",
        "1",
        collection=there,
        judge="ana",
        revisions=[{"action": "confirm", "fact_id": warsaw["fact_id"]}],
    )
    question = {"collection": there, "query": "Where was Marie Curie born?"}
    now = send(http, "POST", "/facts/search", **question)
    assert [(fact["object"], fact["doubted"]) for fact in now["facts"]] == [("Warsaw", False), ("Paris", True)]
    assert now["text"] == "Marie Curie | place of birth: Warsaw [1], Paris (doubted) [2]"
    assert (now["citations"][0]["stated_by"], now["citations"][0]["source"]) == ("a", None)
    then = send(http, "POST", "/facts/search", **question, as_of=moment)
    assert [fact["doubted"] for fact in then["facts"]] == [False, False]
    shown = http.get(f"/facts/{paris['fact_id']}", params={"collection": there}).json()
    causes = [(cause["kind"], cause["by"], cause["supports"], cause["of_fact"]) for cause in shown["history"]]
    assert causes == [
        ("source", "a", False, warsaw["fact_id"]),
        ("source", "b", True, paris["fact_id"]),
        ("confirm", "ana", False, warsaw["fact_id"]),
    ]
    event = judged["events"][0]["event_id"]
    assert http.delete(f"/facts/events/{event}", params={"collection": there}).json()["status"] == "revoked"
    again = send(http, "POST", "/facts/search", **question)
    assert [fact["doubted"] for fact in again["facts"]] == [False, False]


@pytest.fixture
def without_readers(application: Application) -> None:
    """No passage has readers: where one has, routes of facts take `admin`."""
    with application.database.write() as writer:
        for table in ("passage", "sentence", "entity_sentence", "lexical_posting"):
            writer.execute(f"UPDATE {table} SET reader_set_id = NULL WHERE reader_set_id IS NOT NULL")
        writer.execute("DELETE FROM reader_set")


@pytest.mark.usefixtures("without_readers")
def test_judge_of_a_verdict_follows_from_the_access_key(http: TestClient, variant: Variant, there: str) -> None:
    guarded = variant(access="keys")
    made = guarded.auth.access_keys.make(
        LOCAL, AccessKeyRequest(name=f"ana-{there[-8:]}", scopes={there: ["judge"]})
    )
    key = {"authorization": f"Bearer {made.key}", "idempotency-key": "1"}
    confirmed = {"action": "confirm", "fact_id": state(http, there, "a", "Warsaw")["fact_id"]}
    body = {"collection": there, "revisions": [confirmed]}
    client = TestClient(create_app(guarded), headers=key)
    assert client.post("/facts/revise", json=body | {"judge": "bob"}).status_code == 403
    assert [event["judge"] for event in client.post("/facts/revise", json=body).json()["events"]] == [
        made.stored.judge
    ]


def test_intervals_are_dates_and_a_day_is_asked_for(http: TestClient, there: str) -> None:
    fact = {
        "subject": "Acme",
        "predicate": "chair",
        "object": "Ben",
        "valid_from": "2005-01-01",
        "valid_to": "2009-07-01",
    }
    stated = send(http, "POST", "/facts", collection=there, source="a", facts=[fact])["facts"][0]
    assert (stated["valid_from"], stated["valid_to"]) == ("2005-01-01", "2009-07-01")
    found = send(http, "POST", "/facts/search", collection=there, subject="Acme", valid_on="2009-06-30")
    assert found["text"] == "Acme | chair: Ben (2005-2009) [1]"
    assert (
        send(http, "POST", "/facts/search", collection=there, subject="Acme", valid_on="2009-07-01")["facts"] == []
    )


def test_an_entity_is_read_merged_and_split(http: TestClient, there: str) -> None:
    one = state(http, there, "a", "Warsaw")["subject"]["entity_id"]
    other = state(http, there, "a", "Paris", subject="Maria Skłodowska")["subject"]["entity_id"]
    merged = send(http, "POST", f"/entities/{one}/merge", "m", collection=there, judge="ana", entities=[other])
    assert [entity["name"] for entity in merged["merged"]] == ["Maria Skłodowska"]
    assert {fact["object"] for fact in merged["facts"]} == {"Warsaw", "Paris"}
    seen = http.get(f"/entities/{other}", params={"collection": there}).json()
    assert seen["stands_for"]["entity_id"] == one
    split = send(http, "POST", f"/entities/{one}/split", collection=there)
    assert split["merged"] == []
    assert {fact["object"] for fact in split["facts"]} == {"Warsaw"}


def test_a_graph_is_merged_and_a_judges_words_are_revoked(http: TestClient, there: str) -> None:
    body = {"collection": there, "source": "a", "graph": "mine"}
    (fact,) = send(
        http, "POST", "/facts", **body, facts=[{"subject": "Acme", "predicate": "chair", "object": "Eve"}]
    )["facts"]
    wrong = [{"action": "contradict", "fact_id": fact["fact_id"]}]
    send(http, "POST", "/facts/revise", "1", collection=there, judge="crawler", revisions=wrong)
    merged = send(http, "POST", "/facts/merge", "2", collection=there, graph="mine")
    assert {name: merged[name] for name in ("facts", "sentences", "verdicts", "joins")} == {
        "facts": 1,
        "sentences": 1,
        "verdicts": 1,
        "joins": 0,
    }
    (found,) = send(http, "POST", "/facts/search", collection=there, subject="Acme")["facts"]
    assert found["doubted"]
    which = {"collection": there, "judge": "crawler"}
    told = send(http, "POST", "/facts/revoke", **which, preview=True)
    assert (told["event"], told["revoked"], told["believed"]) == (None, 2, 2)
    done = send(http, "POST", "/facts/revoke", "3", **which)
    assert (done["revoked"], done["changed"]) == (2, told["changed"])
    (found,) = send(http, "POST", "/facts/search", collection=there, subject="Acme")["facts"]
    assert not found["doubted"]
    assert send(http, "POST", "/entities/align", collection=there) == {
        "collection": there,
        "joined": 0,
        "joins": [],
    }


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/facts/merge", {"graph": "mine", "into": ""}),
        ("/facts/revoke", {}),
        ("/facts/revoke", {"all": True, "judge": "a"}),
        ("/facts/revoke", {"judge": "a", "kinds": ["assert"]}),
        ("/facts", {"source": "a"}),
        ("/facts", {"source": "a", "text": "x", "facts": [{"subject": "a", "predicate": "b", "object": "c"}]}),
        (
            "/facts",
            {"source": "a", "facts": [{"subject": "...", "predicate": "b", "object": "c", "confidence": 0}]},
        ),
        (
            "/facts",
            {
                "source": "a",
                "facts": [
                    {
                        "subject": "a",
                        "predicate": "b",
                        "object": "c",
                        "valid_from": "2009-01-01",
                        "valid_to": "2008-01-01",
                    }
                ],
            },
        ),
        ("/facts/revise", {"judge": "a"}),
        ("/facts/revise", {"judge": "a", "revisions": [{"action": "delete", "fact_id": 1}]}),
        ("/facts/revise", {"judge": "a", "revisions": [{"action": "supersede", "fact_id": 1}]}),
        ("/facts/search", {}),
        ("/facts/search", {"query": "x", "max_edges": 5}),
        ("/facts/search", {"query": "x", "valid_on": 2009}),
    ],
)
def test_empty_statements_are_refused(http: TestClient, there: str, path: str, body: dict[str, Any]) -> None:
    headers = {"idempotency-key": "k"}
    response = http.post(path, json=body | {"collection": there}, headers=headers)
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"


@pytest.fixture
def model_server() -> Iterator[OpenAiServer]:
    """Endpoint of a language model, without replies yet."""
    with OpenAiServer() as server:
        yield server


@pytest.fixture
def model_http(variant: Variant, model_server: OpenAiServer, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    """Client of an application that asks ``model_server``."""
    set_constants(monkeypatch, {LLM_ATTEMPTS: 1})
    return TestClient(create_app(variant(llm_base_url=model_server.base_url)))


def test_an_instruction_in_words_is_applied_once(
    model_http: TestClient, there: str, model_server: OpenAiServer
) -> None:
    paris = state(model_http, there, "a", "Paris")
    model_server.queue(
        """{"remove": [1], "add": [{"subject": "Marie Curie", "relation": "place of birth", "object": "Warsaw"}]}"""
    )
    body = {
        "collection": there,
        "judge": "ana",
        "instruction": "Marie Curie was born in Warsaw, not in Paris.",
    }
    done = send(model_http, "POST", "/facts/revise", "1", **body)
    assert [event["kind"] for event in done["events"]] == ["assert", "contradict"]
    assert send(model_http, "POST", "/facts/revise", "1", **body)["events"] == done["events"]
    assert len(model_server.requests) == 1
    asked = model_server.requests[0].json["messages"][1]["content"]
    assert "[1] Marie Curie | place of birth | Paris" in asked
    assert model_http.get(f"/facts/{paris['fact_id']}", params={"collection": there}).json()["doubted"]


def test_an_instruction_needs_a_model(http: TestClient, there: str) -> None:
    body = {"collection": there, "judge": "ana", "instruction": "Marie Curie was born in Warsaw."}
    response = http.post("/facts/revise", json=body, headers={"idempotency-key": "1"})
    assert response.status_code == 503
    assert response.json()["type"] == "urn:engram:problem:llm-not-configured"


TEXT = "Ada Berg was born in Lund. She taught in Oslo."
NAMES = json.dumps({"entities": ["Ada Berg", "Lund", "Oslo"]})
TEACHING_FACT = {"subject": "Ada Berg", "relation": "taught in", "object": "Oslo", "sentence": 2}
READ = json.dumps({"facts": [TEACHING_FACT]})


def test_a_model_reads_a_text_once(model_http: TestClient, there: str, model_server: OpenAiServer) -> None:
    body = {"collection": there, "source": "a page", "title": "Ada Berg", "text": TEXT}
    model_server.queue(NAMES, READ)
    read = send(model_http, "POST", "/facts", "1", **body)
    assert read["warnings"] == []
    assert [(one["predicate"], one["object"]) for one in read["facts"]] == [("taught in", "Oslo")]
    shown = model_http.get(f"/facts/{read['facts'][0]['fact_id']}", params={"collection": there}).json()
    assert {source["text"] for source in shown["sources"]} == {"She taught in Oslo."}
    again = send(model_http, "POST", "/facts", "1", **body)
    assert (again["events"], len(model_server.requests)) == (read["events"], 2)


@pytest.mark.parametrize(
    ("said", "budget", "calls", "problem"),
    [
        ([Reply("no", status=400)], {}, 1, "llm-failed"),
        (["no", "no"], {}, 2, "llm-failed"),
        ([NAMES, "no", "no"], {}, 3, "llm-failed"),
        ([], {"llm_calls": 0}, 0, "budget-spent"),
        ([NAMES], {"llm_calls": 1}, 1, "budget-spent"),
    ],
)
def test_text_that_the_model_fails_states_nothing(
    model_http: TestClient,
    there: str,
    model_server: OpenAiServer,
    said: list[str | Reply],
    budget: dict[str, int],
    calls: int,
    problem: str,
) -> None:
    model_server.queue(*said)
    body = {"collection": there, "source": "a page", "title": "Ada Berg", "text": TEXT, "budget": budget}
    failed = model_http.post("/facts", json=body, headers={"idempotency-key": "1"})
    assert (failed.status_code, failed.json()["type"]) == (502, f"urn:engram:problem:{problem}")
    assert len(model_server.requests) == calls
    model_server.queue(NAMES, READ)
    read = send(model_http, "POST", "/facts", "1", **body | {"budget": {}})
    assert [(one["predicate"], one["object"]) for one in read["facts"]] == [("taught in", "Oslo")]


def test_a_long_text_is_read_in_pieces_and_a_piece_that_fails_is_left_out(
    model_http: TestClient, there: str, model_server: OpenAiServer
) -> None:
    filler = "".join(f" Line {number} says {'nothing ' * 12}of note." for number in range(260))
    text = f"Ada Berg was born in Lund.{filler} Cara Lind was born in Malmö."
    fact = {"subject": "Ada Berg", "relation": "native of", "object": "Lund", "sentence": 1}
    model_server.queue(NAMES, json.dumps({"facts": [fact]}), Reply("no", status=400))
    read = send(model_http, "POST", "/facts", collection=there, source="a page", text=text)
    assert ([warning["type"] for warning in read["warnings"]], len(model_server.requests)) == (["not-read"], 3)
    said = {(one["subject"]["name"], one["predicate"], one["object"]) for one in read["facts"]}
    assert said == {("Ada Berg", "native of", "Lund")}


@pytest.mark.usefixtures("without_readers")
def test_reading_a_text_takes_a_model_and_its_scope(
    http: TestClient, variant: Variant, there: str, model_server: OpenAiServer
) -> None:
    body = {"collection": there, "source": "a page", "title": "Ada Berg", "text": TEXT}
    silent = http.post("/facts", json=body)
    assert (silent.status_code, silent.json()["type"]) == (503, "urn:engram:problem:llm-not-configured")
    assert "ENGRAM_LLM_BASE_URL" in silent.json()["detail"]
    guarded = variant(access="keys", llm_base_url=model_server.base_url)
    for name, scopes, status in (("without", ["ingest"], 403), ("with", ["ingest", "llm"], 200)):
        made = guarded.auth.access_keys.make(
            LOCAL, AccessKeyRequest(name=f"{name}-{there[-8:]}", scopes={there: scopes})
        )
        client = TestClient(create_app(guarded), headers={"authorization": f"Bearer {made.key}"})
        model_server.queue(*([NAMES, READ] if status == 200 else []))
        answer = client.post("/facts", json=body)
        assert answer.status_code == status, answer.text
