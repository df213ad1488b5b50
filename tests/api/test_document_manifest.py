"""Documents compared with what a folder has, and changed without their text."""

import json
from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from tests.support import state
from tests.support.strict_client import TestClient

TEXT = "Basel lies on the Rhine."


@pytest.fixture
def collection() -> str:
    return f"manifest-{uuid4().hex[:8]}"


def send(http: TestClient, collection: str, source: str, digest: str, text: str = TEXT, **more: Any) -> str:
    """Ingest a document of one passage; return the address of its job."""
    document = {"source": source, "digest": digest, "folder": "notes"} | more
    passage = {"id": f"{source}#1", "document": source, "text": text, "metadata": {"source": source}}
    body = {"collection": collection, "documents": [document], "passages": [passage]}
    url: str = http.post("/passages", json=body).raise_for_status().json()["status_url"]
    return url


def compare(http: TestClient, collection: str, documents: dict[str, str | None]) -> dict[str, Any]:
    body = {"folder": "notes", "documents": [{"source": one, "digest": of} for one, of in documents.items()]}
    answer = http.post("/documents:compare", params={"collection": collection}, json=body)
    steps: dict[str, Any] = answer.raise_for_status().json()
    return {name: value for name, value in steps.items() if value}


def change(http: TestClient, collection: str, document: str, **fields: Any) -> Any:
    return http.patch(f"/documents/{document}", params={"collection": collection}, json=fields)


def test_a_connector_is_told_what_to_do(http: TestClient, application: Application, collection: str) -> None:
    for source in ("a.md", "b.md", "c.md"):
        send(http, collection, source, source, f"{source} is a file.")
    application.jobs.runner.run_ready()
    assert compare(http, collection, {"a.md": "a.md", "b.md": "b.md", "c.md": "c.md"}) == {}
    assert compare(http, collection, {"a.md": "new", "deep/b.md": "b.md", "d.md": "d"}) == {
        "upload": ["a.md", "d.md"],
        "moved": [{"before": "b.md", "source": "deep/b.md", "titled_by_name": None}],
        "delete": ["c.md"],
    }
    twice = {"folder": "notes", "documents": [{"source": "a", "digest": "a"}, {"source": "a", "digest": "b"}]}
    assert http.post("/documents:compare", params={"collection": collection}, json=twice).status_code == 422


def test_a_document_of_which_a_line_was_rejected_is_to_be_sent_again(
    http: TestClient, application: Application, collection: str
) -> None:
    lines: list[dict[str, Any]] = [{"source": name, "digest": name, "folder": "notes"} for name in ("a.md", "b.md")]
    lines += [{"id": name, "document": name, "text": TEXT} for name in ("a.md", "b.md")]
    lines.append({"id": "b" * 600, "document": "b.md", "text": "Bern lies on the Aare."})
    http.post(
        "/passages",
        params={"collection": collection},
        content="\n".join(map(json.dumps, lines)),
        headers={"content-type": "application/x-ndjson"},
    ).raise_for_status()
    application.jobs.runner.run_ready()
    assert compare(http, collection, {"a.md": "a.md", "b.md": "b.md"}) == {"upload": ["b.md"]}


def test_a_moved_document_keeps_its_rows(http: TestClient, application: Application, collection: str) -> None:
    send(http, collection, "b.md", "b")
    application.jobs.runner.run_ready()
    (before,) = state.rows(application, collection, "passage")
    answer = change(http, collection, "b.md", source="deep/b.md", folder="others")
    assert answer.json() == {"collection": collection, "source": "deep/b.md", "changed": 0}
    (after,) = state.rows(application, collection, "passage")
    assert (after["id"], after["external_id"], after["metadata"]) == (
        before["id"],
        "deep/b.md#1",
        {"source": "deep/b.md"},
    )
    listed = http.get("/documents", params={"collection": collection}).json()["documents"]
    assert [(one["source"], one["folder"], one["digest"]) for one in listed] == [("deep/b.md", "others", "b")]
    assert change(http, collection, "b.md", folder="x").status_code == 404
    assert change(http, collection, "deep/b.md").status_code == 422


def test_a_moved_document_is_dated_and_linked_by_its_new_path(
    http: TestClient, application: Application, collection: str
) -> None:
    def list_versions() -> dict[str, tuple[str | None, str | None]]:
        listed = http.get("/documents", params={"collection": collection}).json()["documents"]
        return {one["source"]: (one["valid_from"], one["replaced_by"]) for one in listed}

    for year, days in ((2022, 20), (2023, 30)):
        send(http, collection, f"{year}/leave.md", str(year), f"Everybody has {days} days of leave in a year.")
    application.jobs.runner.run_ready()
    assert list_versions()["2022/leave.md"] == ("2022-01-01", "2023/leave.md")
    change(http, collection, "2022/leave.md", source="2024/leave.md")
    assert list_versions() == {
        "2023/leave.md": ("2023-01-01", "2024/leave.md"),
        "2024/leave.md": ("2024-01-01", None),
    }
    change(http, collection, "2024/leave.md", source="now/leave.md")
    assert list_versions()["now/leave.md"] == (None, None)


def test_a_name_that_is_taken_is_refused(http: TestClient, application: Application, collection: str) -> None:
    send(http, collection, "a.md", "a", "A is first.")
    send(http, collection, "b.md", "b", "B is second.")
    by_itself = {"id": "c.md#1", "text": "C came by itself."}
    http.post("/passages", json={"collection": collection, "passages": [by_itself]}).raise_for_status()
    application.jobs.runner.run_ready()
    for taken in ("b.md", "c.md"):
        assert change(http, collection, "a.md", source=taken).status_code == 409
    assert {row["external_id"] for row in state.rows(application, collection, "passage")} == {
        "a.md#1",
        "b.md#1",
        "c.md#1",
    }


def test_a_document_is_in_step_only_once_it_is_written(
    http: TestClient, application: Application, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(http, collection, "a.md", "a", "A is first.")
    application.jobs.runner.run_ready()
    url = send(http, collection, "a.md", "a2", "A is not first any more.")

    def cancel(*_: Any) -> None:
        http.post(http.get(url).json()["cancel_url"]).raise_for_status()

    with monkeypatch.context() as patches:
        patches.setattr(application.corpus.kinds, "measure_waiting", cancel)  # which follows the preparation
        application.jobs.runner.run_ready()
    assert http.get(url).json()["status"] == "cancelled"
    for digest in ("a", "a2"):
        assert compare(http, collection, {"a.md": digest}) == {"upload": ["a.md"]}
    send(http, collection, "a.md", "a2", "A is not first any more.")
    application.jobs.runner.run_ready()
    assert compare(http, collection, {"a.md": "a2"}) == {}
