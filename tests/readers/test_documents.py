"""Documents of passages that not everyone may read."""

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from engram.wings.importing.services.file_tokens import FOLDER
from tests.readers.conftest import Client, Put
from tests.support import state
from tests.support.strict_client import TestClient

QUESTION = {"query": "Where is the plan of the merger?", "top_k": 10}


def replace_document(keyed: Application, admin: TestClient, *passages: dict[str, Any]) -> None:
    """Replace the document ``plan.md`` of collection ``plans``."""
    named = [{"document": "plan.md"} | passage for passage in passages]
    body = {"collection": "plans", "documents": [{"source": "plan.md"}], "passages": named}
    accepted = admin.post("/passages", json=body)
    assert accepted.status_code == 202, accepted.text
    keyed.jobs.runner.run_ready()
    job = admin.get(f"/jobs/{accepted.json()['job_id']}", params={"collection": "plans"}).json()
    assert job["status"] == "succeeded", job


def see(client: TestClient) -> set[str]:
    answer = client.post("/query", json=QUESTION | {"collection": "plans"})
    assert answer.status_code == 200, answer.text
    return {passage["passage_id"] for passage in answer.json()["passages"]}


def list_documents(client: TestClient) -> list[tuple[str, int]]:
    page = client.get("/documents", params={"collection": "plans"}).raise_for_status().json()
    return [(one["source"], one["passages"]) for one in page["documents"]]


def test_new_text_of_a_document_stays_with_those_who_read_all_of_it(
    keyed: Application, admin: TestClient, client: Client
) -> None:
    replace_document(
        keyed,
        admin,
        {"id": "plan.md#1", "text": "The plan of the merger is known to all.", "readers": None},
        {
            "id": "plan.md#2",
            "text": "The secret plan of the merger is in the safe. Its price is ten. The number is nine.",
            "readers": ["group:hr"],
        },
    )
    everyone, staff = client(), client("group:hr")
    assert (see(everyone), list_documents(everyone)) == ({"plan.md#1"}, [("plan.md", 1)])
    assert (see(staff), list_documents(staff)) == ({"plan.md#1", "plan.md#2"}, [("plan.md", 2)])

    # Inserted, split and rewritten text, whose lines name no readers.
    replace_document(
        keyed,
        admin,
        {"id": "plan.md#1", "text": "A new plan of the merger, quite unlike the others."},
        {"id": "plan.md#2", "text": "The plan of the merger is known to all."},
        {"id": "plan.md#3", "text": "The secret plan of the merger is in the safe."},
        {"id": "plan.md#4", "text": "Its price is ten. The number is nine."},
    )
    assert see(everyone) == {"plan.md#2"}
    assert see(staff) == {f"plan.md#{number}" for number in (1, 2, 3, 4)}

    # Nothing of it is left as it was.
    replace_document(keyed, admin, {"id": "plan.md#1", "text": "No word of it is where it was."})
    assert (see(everyone), list_documents(everyone)) == (set(), [])
    assert (see(staff), list_documents(staff)) == ({"plan.md#1"}, [("plan.md", 1)])
    mover = client(scopes=["ingest"])
    assert mover.delete("/documents/plan.md", params={"collection": "plans"}).status_code == 404
    assert admin.delete("/documents/plan.md", params={"collection": "plans"}).status_code == 204
    assert list_documents(admin) == []


def test_a_new_passage_of_a_hidden_document_is_as_hidden_whatever_its_id(put: Put, client: Client) -> None:
    hidden = {"text": "The plan of the merger is in the safe.", "document": "own.md", "readers": ["group:hr"]}
    put("plans-by-id", {"id": "safe"} | hidden)
    put(
        "plans-by-id",
        {"id": "note", "text": "The plan of the merger costs ten.", "document": "own.md"},
        {"id": "own.md#7", "text": "The plan of the merger costs nine."},
        {"id": "free", "text": "The plan of the merger is a rumour.", "document": "other.md"},
    )
    seen = {}
    for name, caller in (("all", client()), ("hr", client("group:hr"))):
        answer = caller.post("/query", json=QUESTION | {"collection": "plans-by-id"}).raise_for_status().json()
        seen[name] = {passage["passage_id"] for passage in answer["passages"]}
    assert seen == {"all": {"free"}, "hr": {"safe", "note", "own.md#7", "free"}}


def test_who_sees_a_part_of_a_document_deletes_that_part(
    keyed: Application, admin: TestClient, client: Client
) -> None:
    replace_document(
        keyed,
        admin,
        {"id": "plan.md#1", "text": "The plan of the merger is known to all.", "readers": None},
        {"id": "plan.md#2", "text": "The plan of the merger is in the safe.", "readers": ["group:hr"]},
    )
    where = {"params": {"collection": "plans"}}
    mover = client(scopes=["ingest", "read", "query"])
    assert mover.delete("/documents/plan.md", **where).status_code == 204
    assert (list_documents(mover), mover.delete("/documents/plan.md", **where).status_code) == ([], 404)
    staff = client("group:hr", scopes=["ingest", "read", "query"])
    assert (see(staff), list_documents(staff)) == ({"plan.md#2"}, [("plan.md", 1)])
    assert staff.delete("/documents/plan.md", **where).status_code == 204
    assert list_documents(admin) == []


def test_who_sees_a_part_of_a_document_changes_nothing_of_the_rest(
    keyed: Application, admin: TestClient, client: Client
) -> None:
    replace_document(
        keyed,
        admin,
        {"id": "plan.md#1", "text": "The plan of the merger is known to all.", "readers": None},
        {"id": "plan.md#2", "text": "The plan of the merger is in the safe.", "readers": ["group:hr"]},
    )
    where = {"params": {"collection": "plans"}}
    mover, staff = (client(*names, scopes=["ingest", "read", "query"]) for names in ((), ("group:hr",)))
    for change in ({"source": "other.md"}, {"valid_from": "2024-01-01"}, {"replaced_by": None}):
        refused = mover.patch("/documents/plan.md", json=change, **where)
        assert refused.status_code == 409, change
    assert staff.patch("/documents/plan.md", json={"source": "new.md"}, **where).status_code == 200
    assert see(staff) == {"new.md#1", "new.md#2"}
    assert admin.delete("/documents/new.md", **where).status_code == 204


PLAN = f"{FOLDER}/plan.md"
OPEN = {"id": f"{PLAN}#1", "text": "The plan of the merger is known to all.", "document": PLAN}
HIDDEN = {"id": f"{PLAN}#2", "text": "The plan is in the safe.", "document": PLAN, "readers": ["group:hr"]}
NEW = {"id": f"{PLAN}#1", "text": "A new plan of the merger.", "document": PLAN}
KNOWN = {"source": PLAN, "folder": FOLDER}


def send_json(client: TestClient, collection: str, **how: Any) -> Any:
    body = {"collection": collection, "documents": [KNOWN | how], "passages": [NEW]}
    return client.post("/passages", json=body)


def send_lines(client: TestClient, collection: str, *documents: dict[str, Any], passage: Any = NEW) -> Any:
    lines = "".join(f"{json.dumps(line)}\n" for line in (*(documents or [KNOWN]), passage))
    headers = {"content-type": "application/x-ndjson"}
    return client.post("/passages", params={"collection": collection}, content=lines, headers=headers)


def send_elsewhere(client: TestClient, collection: str) -> Any:
    return send_json(client, collection, folder="elsewhere")


def send_file(client: TestClient, collection: str) -> Any:
    where = {"name": PLAN, "collection": collection}
    headers = {"content-type": "application/octet-stream"}
    return client.post("/documents", params=where, content=NEW["text"].encode(), headers=headers)


def send_to_knowledge(client: TestClient, collection: str) -> Any:
    form = {"metadata": json.dumps({"knowledge_id": collection, "file_hash": "a"})}
    return client.post("/api/v1/files/", data=form, files={"file": ("plan.md", NEW["text"].encode())})


@pytest.mark.parametrize(
    ("send", "hidden_whole", "status"),
    [
        (send_json, False, 409),
        (send_lines, False, 202),
        (send_file, False, 409),
        (send_to_knowledge, False, 409),
        (send_elsewhere, True, 409),
        (send_file, True, 409),
        (send_json, True, None),
        (send_lines, True, None),
        (send_to_knowledge, True, None),
    ],
)
def test_who_does_not_see_all_of_a_document_replaces_it_only_from_its_folder(
    keyed: Application,
    admin: TestClient,
    client: Client,
    put: Put,
    send: Callable[[TestClient, str], Any],
    hidden_whole: bool,
    status: int | None,
) -> None:
    """Passages that nobody saw go are not lost; an importer may bring what it cannot read. None: it is replaced."""
    collection = f"part-{uuid4().hex[:8]}"
    first = OPEN | {"readers": ["group:hr"]} if hidden_whole else OPEN
    put(collection, first, HIDDEN, documents=[KNOWN])
    answer = send(client(scopes=["ingest"]), collection)
    assert answer.status_code == (status or 202), answer.text
    keyed.jobs.runner.run_ready()
    held = {row["external_id"]: row["text"] for row in state.rows(keyed, collection, "passage")}
    if status is None:
        assert list(held) == [f"{PLAN}#1"]
        return
    assert held == {OPEN["id"]: OPEN["text"], HIDDEN["id"]: HIDDEN["text"]}
    reason = f"You do not see all of {PLAN!r}. It is replaced by who does."
    if status == 409:
        assert answer.json()["detail"] == reason
        return
    job = admin.get(f"/jobs/{answer.json()['job_id']}", params={"collection": collection}).json()
    assert (job["rejected"], job["errors"]) == (1, [{"line": 2, "reason": reason}])


def test_a_document_that_is_gone_is_no_new_one_for_who_sees_a_part_of_it(
    keyed: Application, client: Client, put: Put
) -> None:
    put("part-moved", OPEN, HIDDEN, documents=[KNOWN])
    moved = OPEN | {"id": "new.md#1", "document": "new.md"}
    gone = {"source": PLAN, "missing": True}
    answer = send_lines(client(scopes=["ingest"]), "part-moved", {"source": "new.md"}, gone, passage=moved)
    assert answer.status_code == 202, answer.text
    keyed.jobs.runner.run_ready()
    held = sorted(row["external_id"] for row in state.rows(keyed, "part-moved", "passage"))
    assert held == ["new.md#1", OPEN["id"], HIDDEN["id"]]


def test_the_readers_of_documents_are_listed_for_who_may_import(
    keyed: Application, admin: TestClient, client: Client
) -> None:
    replace_document(
        keyed,
        admin,
        {"id": "plan.md#1", "text": "The plan of the merger is known to all.", "readers": None},
        {"id": "plan.md#2", "text": "The plan of the merger is in the safe.", "readers": ["group:hr"]},
        {"id": "plan.md#3", "text": "The key of the safe is under the mat.", "readers": []},
    )
    lists = []
    for who in (admin, client(scopes=["ingest", "read"]), client("group:hr", scopes=["read"])):
        [listed] = who.get("/documents", params={"collection": "plans"}).json()["documents"]
        lists.append(listed["readers"])
    assert lists == [[[], ["group:hr"], None], [None], None]
    assert admin.delete("/documents/plan.md", params={"collection": "plans"}).status_code == 204
