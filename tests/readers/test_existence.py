"""Nothing tells that something hidden is there: no id, share, spelling or hash, nor how one is refused."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from tests.readers.conftest import Client, Put
from tests.support.strict_client import TestClient

QUESTION = "What does Marie Curie earn?"
OPEN = {
    "id": "open",
    "title": "Marie Curie",
    "text": "Marie Curie was born in Warsaw. Marie Curie met Ada Lovelace.",
}
HIDDEN = {
    "id": "hidden",
    "title": "Wages",
    "text": "MARIE CURIE earns 7,000 crowns in WARSAW. ADA LOVELACE earns less.",
    "readers": ["group:hr"],
}


@pytest.fixture
def docs(put: Put) -> str:
    name = f"existence-{uuid4().hex[:8]}"
    put(name, HIDDEN)  # first: names are kept as it writes them
    put(name, OPEN)
    return name


def ask(client: TestClient, collection: str, **more: Any) -> Any:
    answer = client.post("/query", json={"query": QUESTION, "collection": collection, "top_k": 5, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def judge(client: TestClient, collection: str, query: str, **verdict: Any) -> Any:
    body = {"query_id": query, "collection": collection, "wait": True, **verdict}
    return client.post("/feedback", json=body, headers={"idempotency-key": str(uuid4())})


@pytest.mark.wing("sessions")
def test_an_id_of_another_is_answered_like_one_of_nothing(docs: str, client: Client) -> None:
    hr, staff = client("group:hr"), client("group:staff")
    query = ask(hr, docs)["query_id"]
    verdict = judge(hr, docs, query, none_helped=True).json()["feedback_id"]
    session = hr.post("/sessions", json={"question": QUESTION, "collection": docs, "planner": "caller"}).json()
    never = str(uuid4())
    calls: dict[str, tuple[Any, Any, Callable[[Any], Any]]] = {
        "query": (query, never, lambda one: staff.get(f"/queries/{one}")),
        "verdict": (verdict, 2**62, lambda one: staff.get(f"/feedback/{one}")),
        "session": (session["session_id"], never, lambda one: staff.get(f"/sessions/{one}")),
        "events": (session["session_id"], never, lambda one: staff.get(f"/sessions/{one}/events")),
        "round": (session["session_id"], never, lambda one: staff.post(f"/sessions/{one}/rounds", json={})),
    }
    for name, (there, absent, call) in calls.items():
        told = [(answer := call(one), answer.json()["detail"].replace(str(one), "ID")) for one in (there, absent)]
        assert [answer.status_code for answer, _ in told] == [404, 404], name
        assert told[0][1] == told[1][1], name
        assert docs not in told[0][0].text, name


def test_what_was_measured_of_hidden_passages_is_not_shown(
    docs: str, keyed: Application, client: Client, admin: TestClient
) -> None:
    keyed.corpus.kinds.run(lambda: False)
    whole = admin.get(f"/collections/{docs}").json()
    seen = client("group:staff").get(f"/collections/{docs}").json()
    listed = client("group:staff").get("/collections", params={"limit": 1000}).json()["collections"]
    assert whole["title_share"] is not None
    for one in (seen, *(one for one in listed if one["name"] == docs)):
        assert (one["title_share"], one["question_share"], one["question_count"], one["indexed"]) == (
            None,
            None,
            0,
            [],
        )
        assert one["corpus_kind"] == whole["corpus_kind"]


def test_a_name_is_not_written_as_a_hidden_passage_has_it(docs: str, client: Client, admin: TestClient) -> None:
    include = {"include": ["trace", "entities"], "query": "Whom did Marie Curie meet in Warsaw?"}
    staff = client("group:staff")
    answer = ask(staff, docs, **include)
    again = staff.get(f"/queries/{answer['query_id']}", params={"collection": docs}).text
    for told in (str(answer), again):
        assert "marie curie" in told
        assert not any(name in told for name in ("MARIE", "WARSAW", "ADA"))
    assert "MARIE CURIE" in str(ask(admin, docs, **include))


def test_an_answer_with_a_hidden_passage_is_judged_like_no_answer(
    docs: str, client: Client, admin: TestClient
) -> None:
    hr, staff = client("group:hr"), client("group:staff")
    found = ask(hr, docs, include=["sentences"])
    assert {one["passage_id"] for one in found["passages"]} == {"open", "hidden"}
    visible = next(one for one in found["passages"] if one["passage_id"] == "open")["sentences"][0]["sentence_id"]
    never = str(uuid4())
    for verdict in (
        {"none_helped": True},
        {"supporting": [visible]},
        {"supporting": [{"passage_id": "open", "text": OPEN["text"][:31]}]},
        {"rating": "down"},
    ):
        refused, unknown = (judge(staff, docs, query, **verdict) for query in (found["query_id"], never))
        assert (refused.status_code, unknown.status_code) == (404, 404), refused.text
        assert refused.json()["detail"].replace(found["query_id"], never) == unknown.json()["detail"]
    assert admin.get("/feedback", params={"collection": docs}).json()["feedback"] == []
    assert judge(hr, docs, found["query_id"], none_helped=True).status_code == 200
    assert judge(admin, docs, found["query_id"], none_helped=True).status_code == 200


def test_an_answer_of_visible_passages_is_judged_by_others(docs: str, client: Client, admin: TestClient) -> None:
    shown = ask(client("group:nurses"), docs)
    taken = judge(client("group:staff"), docs, shown["query_id"], none_helped=True)
    assert taken.status_code == 200, taken.text
    assert taken.json()["changes"]
    admin.patch(
        "/passages/open", json={"readers": ["group:nurses"]}, params={"collection": docs}
    ).raise_for_status()
    assert judge(client("group:staff"), docs, shown["query_id"], none_helped=True).status_code == 404
    own = judge(client("group:nurses"), docs, shown["query_id"], none_helped=True)
    assert own.status_code == 200, own.text


@pytest.fixture
def pay(keyed: Application, admin: TestClient) -> str:
    """A collection with a document of which not everyone sees all."""
    name = f"existence-{uuid4().hex[:8]}"
    document = {
        "source": "pay.md",
        "folder": "handbook",
        "digest": "5f2a",
        "pages": 2,
        "notes": ["page 2 is a scan"],
    }
    passages = [
        {"id": "pay.md#1", "document": "pay.md", "text": "Wages are paid monthly.", "readers": None},
        {"id": "pay.md#2", "document": "pay.md", "text": "Marie Curie earns 7,000.", "readers": ["group:hr"]},
    ]
    body = {"collection": name, "documents": [document], "passages": passages}
    admin.post("/passages", json=body).raise_for_status()
    keyed.jobs.runner.run_ready()
    return name


def test_the_hash_of_a_document_is_shown_to_whoever_sees_all_of_it(
    pay: str, client: Client, admin: TestClient
) -> None:
    """Whoever sees a part could try what the rest says until the hash fits."""

    def list_known(caller: TestClient) -> tuple[Any, ...]:
        (one,) = caller.get("/documents", params={"collection": pay}).raise_for_status().json()["documents"]
        return one["passages"], one["digest"], one["pages"], one["notes"]

    assert list_known(client("group:staff")) == (1, None, None, [])
    assert list_known(client("group:hr")) == list_known(admin) == (2, "5f2a", 2, ["page 2 is a scan"])


def test_the_importers_folder_is_shown_to_who_may_import(pay: str, client: Client, admin: TestClient) -> None:
    def list_folders(caller: TestClient) -> list[str | None]:
        listed = caller.get("/documents", params={"collection": pay}).raise_for_status().json()["documents"]
        return [one["folder"] for one in listed]

    assert list_folders(client("group:hr")) == [None]
    assert list_folders(client("group:hr", scopes=["read", "ingest"])) == list_folders(admin) == ["handbook"]


@pytest.mark.parametrize("source", ["pay.md", "wages.md"])
@pytest.mark.parametrize("folder", ["handbook", "elsewhere"])
def test_a_hash_is_compared_for_whoever_sees_all_of_its_document(
    pay: str, client: Client, admin: TestClient, source: str, folder: str
) -> None:
    def compare(caller: TestClient, digest: str) -> Any:
        manifest = {"folder": folder, "documents": [{"source": source, "digest": digest}]}
        answer = caller.post("/documents:compare", params={"collection": pay}, json=manifest)
        return answer.raise_for_status().json()

    writer = client("group:staff", scopes=["ingest"])
    assert compare(writer, "5f2a") == compare(writer, "0000")
    for whole in (client("group:hr", scopes=["ingest"]), admin):
        assert compare(whole, "5f2a") != compare(whole, "0000")


def test_a_collection_that_one_may_not_ask_is_as_if_it_were_not(client: Client, docs: str, put: Put) -> None:
    put("unread", OPEN)
    limited = client(scopes={docs: ["query"]})

    def ask(*names: str) -> tuple[int, str]:
        answer = limited.post("/query", json={"query": QUESTION, "collections": names})
        problem = answer.json() | {"request_id": ""}
        return answer.status_code, str(problem).replace("never-made", "unread")

    assert ask(docs, "unread") == ask(docs, "never-made")
    assert ask("unread", docs) == ask("never-made", docs)
    assert ask(docs, "unread")[0] == 404
