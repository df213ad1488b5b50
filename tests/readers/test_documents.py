"""Documents of passages that not everyone may read."""

from typing import Any

from engram.composition.container import Application
from tests.readers.conftest import Client
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
