"""Documents that are posted become passages, by the code that the command line uses."""

import importlib.util
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from engram.runtime.api_process import create_app
from tests.api.conftest import Variant
from tests.api.operations import assert_problem
from tests.support.strict_client import TestClient

FILES = Path(__file__).parent / "files"
BINARY = {"content-type": "application/octet-stream"}


@pytest.fixture
def collection() -> str:
    return f"documents-{uuid4().hex[:8]}"


def post(http: TestClient, name: str, data: bytes, collection: str, key: str | None = None, **more: Any) -> Any:
    headers = BINARY | ({} if key is None else {"idempotency-key": key})
    return http.post(
        "/documents", params={"name": name, "collection": collection, **more}, content=data, headers=headers
    )


@pytest.fixture
def done(http: TestClient, application: Application) -> Callable[[Any], dict[str, Any]]:
    def wait(answer: Any) -> dict[str, Any]:
        """The job of an answer, done."""
        answer.raise_for_status()
        while application.jobs.runner.run_ready():
            pass
        job: dict[str, Any] = http.get(answer.json()["status_url"]).raise_for_status().json()
        assert job["status"] == "succeeded", job
        return job

    return wait


def ids(http: TestClient, collection: str) -> list[str]:
    page = http.get(f"/collections/{collection}/passages").raise_for_status().json()
    return [passage["id"] for passage in page["passages"]]


def test_a_pdf_becomes_passages_with_pages_and_headings(
    http: TestClient, collection: str, done: Callable[[Any], dict[str, Any]]
) -> None:
    answer = post(http, "staff/handbook.pdf", (FILES / "handbook.pdf").read_bytes(), collection)
    assert answer.status_code == 202, answer.text
    body = answer.json()
    assert (body["source"], body["passages"], body["notes"]) == ("staff/handbook.pdf", 4, [])
    assert done(answer)["created"] == 4
    stored = http.get("/passages/staff/handbook.pdf%233", params={"collection": collection}).json()
    assert stored["metadata"] == {
        "source": "staff/handbook.pdf",
        "format": "pdf",
        "heading": ["Travel", "Abroad"],
        "page": 2,
    }
    assert stored["sentences"][0]["text"] == "Abroad"


def test_html_has_no_tags_and_a_long_text_is_many_passages(
    http: TestClient, collection: str, done: Callable[[Any], dict[str, Any]]
) -> None:
    page = b"<html><body><nav>Home</nav><h1>T</h1><p>The <b>Rhine</b> ends in the sea.</p></body></html>"
    assert done(post(http, "a.html", page, collection))["created"] == 1
    assert http.get("/passages/a.html%231", params={"collection": collection}).json()["text"] == (
        "The Rhine ends in the sea."
    )
    long = " ".join(f"River number {n % 40} flows slowly into the sea." for n in range(800))
    assert post(http, "long.md", long.encode(), collection).json()["passages"] > 20


def test_a_new_version_replaces_the_old_one_and_nothing_else(
    http: TestClient, collection: str, done: Callable[[Any], dict[str, Any]]
) -> None:
    done(post(http, "a.md", b"# T\n\n## A\n\nOne.\n\n## B\n\nTwo.\n\n## C\n\nThree.\n", collection))
    done(post(http, "a.md.txt", b"Another.", collection))
    assert ids(http, collection) == ["a.md#1", "a.md#2", "a.md#3", "a.md.txt#1"]
    job = done(post(http, "a.md", b"# T\n\n## A\n\nOne.\n\n## B\n\nTwo, but new.\n", collection))
    assert (job["unchanged"], job["updated"]) == (1, 1)
    assert ids(http, collection) == ["a.md#1", "a.md#2", "a.md.txt#1"]


def test_a_repeated_key_is_one_job_and_another_file_a_conflict(http: TestClient, collection: str) -> None:
    first = post(http, "a.txt", b"One.", collection, key="once").json()
    assert post(http, "a.txt", b"One.", collection, key="once").json()["job_id"] == first["job_id"]
    for name, data, more in (("a.txt", b"Two.", {}), ("b.txt", b"One.", {}), ("a.txt", b"One.", {"size": 500})):
        conflict = post(http, name, data, collection, key="once", **more)
        assert_problem(conflict)
        assert conflict.json()["type"] == "urn:engram:problem:idempotency-conflict"


def test_the_assumed_encoding_is_noted(http: TestClient, collection: str) -> None:
    body = post(http, "a.txt", "Café Zürich".encode("latin-1"), collection).json()
    assert body["notes"] == ["a.txt: read as Windows-1252, because it is not UTF-8"]


def bomb() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", bytes(257 * 2**20))
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.docx", b"not a zip", "no zip file"),
        ("a.docx", bomb(), "unpacks to more"),
        ("a.pdf", (FILES / "locked.pdf").read_bytes(), "password"),
        ("a.txt", b"", "empty"),
        ("a.exe", b"MZ", "none of the kinds"),
        ("a", b"text", "none of the kinds"),
    ],
    ids=["no zip", "bomb", "locked", "empty", "other", "no ending"],
)
def test_a_file_that_cannot_be_read_is_refused_and_leaves_nothing(
    http: TestClient, collection: str, name: str, data: bytes, reason: str
) -> None:
    refused = post(http, name, data, collection)
    assert_problem(refused)
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:engram:problem:unreadable-document")
    assert reason in refused.json()["detail"]
    assert http.get(f"/collections/{collection}").status_code == 404


def test_requests_that_are_wrong_in_themselves(http: TestClient, collection: str) -> None:
    assert post(http, "a.txt", b"One.", collection, size=200, overlap=200).status_code == 422
    assert post(http, "x" * 401, b"One.", collection).status_code == 422
    assert post(http, "a\x00.txt", b"One.", collection).status_code == 422
    assert http.post("/documents", content=b"One.", headers=BINARY).status_code == 422
    compressed = http.post(
        "/documents", params={"name": "a.txt"}, content=b"x", headers=BINARY | {"content-encoding": "gzip"}
    )
    assert compressed.status_code == 415
    assert http.get(f"/collections/{collection}").status_code == 404


def test_a_size_and_a_time_are_settings(variant: Variant, collection: str) -> None:
    small = TestClient(create_app(variant(importing_max_bytes=10)))
    assert post(small, "a.txt", b"Longer than ten bytes.", collection).status_code == 413
    hasty = TestClient(create_app(variant(importing_timeout_seconds=0.001)))
    late = post(hasty, "a.txt", b"One sentence of many. " * 100_000, collection)
    assert late.status_code == 422
    assert "took longer than" in late.json()["detail"]


def test_without_the_libraries_the_answer_says_how_to_get_them(
    http: TestClient, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "engram.wings.importing.services.document_conversion.find_spec",
        lambda name: None if name == "mammoth" else importlib.util.find_spec(name),
    )
    refused = post(http, "a.docx", b"x", collection)
    assert_problem(refused)
    assert refused.status_code == 501
    assert "mammoth" in refused.json()["detail"]
    assert "engram[import]" in refused.json()["detail"]
