"""Sources synchronised by the real oikb: its client, its order of requests and its connectors."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
import pytest
from oikb.client import OikbClient
from oikb.connectors import BaseConnector
from oikb.connectors.filesystem import FilesystemConnector
from oikb.connectors.github import GitHubConnector
from oikb.connectors.s3 import S3Connector
from oikb.sync import SyncResult, run_sync

from engram.composition.container import Application
from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from engram.wings.importing.conversion.documents import Conversion
from engram.wings.importing.conversion.formats import convert
from engram.wings.importing.services.document_conversion import DocumentConversion
from engram.wings.importing.services.file_tokens import FileToken
from tests.api.conftest import Variant
from tests.conftest import Ingest
from tests.support import state
from tests.support.live_server import LiveServer
from tests.support.s3_server import open_bucket
from tests.support.strict_client import TestClient
from tests.wings.importing.test_file_systems import (
    CHANGED,
    DELETED,
    FILES,
    RENAMED,
    assert_equal,
    kill_runs,
    name,
    text,
)
from tests.wings.importing.test_learning_follows import assert_sound, passages, taught, teach

HANDBOOK = {
    "travel/trains.md": "# Trains\n\nTake the train to Basel.\n",
    "food.txt": "Lunch is at noon.\n",
    "pay.md": "# Pay\n\nPay day is the first. Bonuses come in May.\n",
}


MAIL = """From: Ana <ana@example.org>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain

Lunch is at noon.
--b
Content-Type: text/plain
Content-Disposition: attachment; filename=supper.txt

Supper is at six.
--b--
"""


@pytest.fixture(autouse=True)
def converted_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Convert files in the test's own process: one for each file takes a second."""

    def convert_here(
        service: DocumentConversion, source: str, data: bytes, *, client_left: object, **how: Any
    ) -> Conversion:
        return convert(source, data, limits=service.limits, **how)

    monkeypatch.setattr(DocumentConversion, "convert", convert_here)


@pytest.fixture
def client(service: str) -> Iterator[OikbClient]:
    with OikbClient(service, "none") as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of three files, one in a directory."""
    folder = tmp_path / "handbook"
    write(folder, HANDBOOK)
    return folder


def write(folder: Path, files: Mapping[str, str]) -> None:
    for relative, content in files.items():
        path = folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


Keyed = Callable[[dict[str, list[str]]], OikbClient]


@pytest.fixture
def keyed(variant: Variant) -> Iterator[Keyed]:
    """Clients with keys of these scopes, of a service that needs keys."""
    guarded = variant(access="keys")
    made: list[OikbClient] = []
    with LiveServer(create_app(guarded)) as server:

        def make(scopes: dict[str, list[str]]) -> OikbClient:
            key = guarded.auth.access_keys.make(LOCAL, AccessKeyRequest(name="sync", scopes=scopes)).key
            made.append(OikbClient(server.url, key))
            return made[-1]

        yield make
        for one in made:
            one.close()


def run_jobs(application: Application) -> None:
    while application.jobs.runner.run_ready():
        pass


def sync(application: Application, client: OikbClient, source: Path | BaseConnector, collection: str) -> SyncResult:
    """Run the tool once, then the jobs that its uploads made."""
    connector = FilesystemConnector(source) if isinstance(source, Path) else source
    result = run_sync(client, connector, collection, quiet=True)
    run_jobs(application)
    return result


def counts(result: SyncResult) -> tuple[int, int, int, int]:
    """Added, modified, deleted and unmodified files of a run without errors."""
    assert not result.errors
    return result.added, result.modified, result.deleted, result.unmodified


def sources(application: Application, collection: str) -> list[str]:
    return sorted(row["source"] for row in state.rows(application, collection, "document"))


def texts(application: Application, collection: str) -> dict[str, str]:
    """External id -> text of the passages, in the order of the ids."""
    return dict(sorted(passages(application, collection).items()))


def test_a_folder_is_followed(application: Application, client: OikbClient, folder: Path, collection: str) -> None:
    assert counts(sync(application, client, folder, collection)) == (3, 0, 0, 0)
    assert sources(application, collection) == ["oikb/food.txt", "oikb/pay.md", "oikb/travel/trains.md"]
    teach(application, collection, "Take the train to Basel.", "Pay day is the first.")
    write(
        folder,
        {"pay.md": HANDBOOK["pay.md"].replace("May", "June"), "rail/trains.md": HANDBOOK["travel/trains.md"]},
    )
    (folder / "travel" / "trains.md").unlink()
    (folder / "food.txt").unlink()
    assert counts(sync(application, client, folder, collection)) == (0, 1, 2, 0)  # a move is shown as a deletion
    assert texts(application, collection) == {
        "oikb/pay.md#1": "Pay day is the first. Bonuses come in June.",
        "oikb/rail/trains.md#1": "Take the train to Basel.",
    }
    assert taught(application, collection) == ["Pay day is the first.", "Take the train to Basel."]
    assert_sound(application, collection)
    assert counts(sync(application, client, folder, collection)) == (0, 0, 0, 2)


@pytest.mark.parametrize(
    ("name", "text", "after", "uploads"),
    [
        ("food.txt", "Lunch is at noon.\n", "meals.txt", 0),  # its title is its name
        ("a  b.rst", "Lunch is at noon.\n", "old/the  meals.rst", 0),
        ("food.md", "# food\n\nLunch is at noon.\n", "meals.md", 0),  # or is not
        ("food.md", "# Kitchen\n\nLunch is at noon.\n", "meals.txt", 1),  # whose heading is no title
        ("food.eml", MAIL, "meals.eml", 1),  # the title of its attachment is another one
        ("food.csv", "text,since\nLunch is at noon.,2020\nSupper is at six.,2021\n", "meals.csv", 0),
        ("food.md", "# Kitchen\n\nLunch is at noon.\n", "meals.md", 0),
        ("food.md", "# Kitchen\n\nLunch is at noon.\n", "old/meals.MD", 0),
    ],
)
def test_a_file_with_another_name_is_sent_only_if_it_is_read_otherwise(
    application: Application,
    client: OikbClient,
    tmp_path: Path,
    collection: str,
    name: str,
    text: str,
    after: str,
    uploads: int,
) -> None:
    folder = tmp_path / "renamed"
    write(folder, {name: text, "other.txt": "Other.\n"})
    sync(application, client, folder, collection)
    teach(application, collection, "Lunch is at noon.")
    (folder / after).parent.mkdir(exist_ok=True)
    (folder / name).rename(folder / after)
    assert counts(sync(application, client, folder, collection)) == (0, uploads, 1 - uploads, 1)
    assert counts(sync(application, client, folder, collection)) == (0, 0, 0, 2)
    assert "Lunch is at noon." in taught(application, collection)
    assert_sound(application, collection)
    sync(application, client, folder, f"{collection}-fresh")
    assert_equal(application, collection, f"{collection}-fresh")
    moved, fresh = (
        [
            (row["external_id"], row["title"], row["language"], row["metadata"], row["content_hash"])
            for row in state.rows(application, one, "passage")
        ]
        for one in (collection, f"{collection}-fresh")
    )
    assert sorted(moved, key=str) == sorted(fresh, key=str)


def test_a_renamed_file_is_asked_for_again_if_the_run_ended_before_its_upload(
    application: Application, client: OikbClient, folder: Path, collection: str
) -> None:
    sync(application, client, folder, collection)
    (folder / "food.txt").rename(folder / "meals.md")
    manifest = [entry.to_dict() for entry in FilesystemConnector(folder).build_manifest()]
    (modified,) = client.sync_diff(collection, manifest)["modified"]
    client.sync_cleanup(collection, [modified["stale_file_id"]])
    assert "oikb/meals.md" in sources(application, collection)
    assert counts(sync(application, client, folder, collection)) == (0, 1, 0, 2)
    assert counts(sync(application, client, folder, collection)) == (0, 0, 0, 3)


def test_what_jobs_have_yet_to_write_is_not_sent_again(
    application: Application, client: OikbClient, folder: Path, collection: str, http: TestClient
) -> None:
    run_sync(client, FilesystemConnector(folder), collection, quiet=True)
    again = run_sync(client, FilesystemConnector(folder), collection, quiet=True)
    assert counts(again) == (0, 0, 0, 3)
    sent = client.upload_file(b"Supper is at six.\n", "supper.txt", collection, "s1")
    status = f"/api/v1/files/{sent['id']}/process/status"
    assert http.get(status).json() == {"status": "pending", "error": None}
    refused = http.post(f"/api/v1/knowledge/{collection}/reset")
    assert (refused.status_code, refused.json()["detail"][:7]) == (409, "4 files")
    run_jobs(application)
    assert http.get(status).json() == {"status": "completed", "error": None}
    assert [one["filename"] for one in client.list_kb_files(collection)] == [
        "food.txt", "pay.md", "supper.txt", "travel/trains.md"
    ]  # fmt: skip


def test_a_failed_job_is_told_and_its_file_sent_again(
    application: Application, client: OikbClient, collection: str, folder: Path, http: TestClient
) -> None:
    sent = client.upload_file(b"Lunch is at noon.\n", "food.txt", collection, "other")
    http.post(sent["cancel_url"]).raise_for_status()
    status = http.get(f"/api/v1/files/{sent['id']}/process/status").json()
    assert status == {"status": "failed", "error": "The job was cancelled."}
    assert counts(sync(application, client, folder, collection)) == (3, 0, 0, 0)


def test_other_documents_stay(
    application: Application, client: OikbClient, folder: Path, collection: str, http: TestClient, ingest: Ingest
) -> None:
    def put(name: str) -> None:
        where = {"name": name, "collection": collection}
        kind = {"content-type": "application/octet-stream"}
        http.post("/documents", params=where, content=b"By hand.\n", headers=kind).raise_for_status()

    put("food.txt")
    put("oikb/pay.md")
    run_jobs(application)
    ingest({"id": "loose", "text": "A passage of no document."})
    assert counts(sync(application, client, folder, collection)) == (2, 0, 0, 0)
    assert texts(application, collection)["oikb/pay.md#1"] == "By hand."
    forged = FileToken(collection, "food.txt", hashlib.sha256(b"By hand.\n").hexdigest()).write()
    assert client.sync_cleanup(collection, [forged])["files"] == 0
    with pytest.raises(httpx.HTTPStatusError, match="409"):
        client.upload_file(b"Mine.\n", "pay.md", collection, "p")
    client.reset_kb(collection)
    assert sources(application, collection) == ["food.txt", "oikb/pay.md"]
    assert "loose" in texts(application, collection)


def test_a_document_that_changed_since_the_comparison_is_not_deleted(
    application: Application, client: OikbClient, folder: Path, collection: str
) -> None:
    sync(application, client, folder, collection)
    kept = [entry.to_dict() for entry in FilesystemConnector(folder).build_manifest() if entry.filename != "pay.md"]
    (stale,) = client.sync_diff(collection, kept)["deleted"]
    write(folder, {"pay.md": "# Pay\n\nPay day is the second.\n"})
    assert counts(sync(application, client, folder, collection)) == (0, 1, 0, 2)
    assert client.sync_cleanup(collection, [stale["file_id"]])["files"] == 0
    assert "oikb/pay.md" in sources(application, collection)


def test_a_key_that_sees_no_digests_deletes_no_document_that_changed_since(
    application: Application, client: OikbClient, keyed: Keyed, folder: Path, collection: str, http: TestClient
) -> None:
    sync(application, client, folder, collection)
    where = {"collection": collection}
    http.patch("/documents/oikb/pay.md", params=where, json={"readers": ["group:hr"]}).raise_for_status()
    bound = keyed({collection: ["ingest"]})
    kept = [
        entry.to_dict() for entry in FilesystemConnector(folder).build_manifest() if entry.filename != "food.txt"
    ]
    (stale,) = bound.sync_diff(collection, kept)["deleted"]
    write(folder, {"food.txt": "Lunch is at one.\n"})
    assert counts(sync(application, client, folder, collection)) == (0, 1, 0, 2)
    assert bound.sync_cleanup(collection, [stale["file_id"]])["files"] == 0
    assert bound.sync_cleanup(collection, [FileToken(collection, "oikb/food.txt", None).write()])["files"] == 0
    (stale,) = bound.sync_diff(collection, kept)["deleted"]
    assert bound.sync_cleanup(collection, [stale["file_id"]])["files"] == 1
    assert sources(application, collection) == ["oikb/pay.md", "oikb/travel/trains.md"]


def test_a_file_whose_path_became_too_long_keeps_its_document(
    application: Application, client: OikbClient, folder: Path, collection: str
) -> None:
    sync(application, client, folder, collection)
    deep = folder / ("b" * 200) / ("c" * 200)
    deep.mkdir(parents=True)
    (folder / "food.txt").rename(deep / "food.txt")
    result = sync(application, client, folder, collection)
    (error,) = result.errors or []
    assert "more than 400 characters" in error
    assert "oikb/food.txt" in sources(application, collection)


def test_what_cannot_be_read_is_told(
    application: Application, client: OikbClient, folder: Path, collection: str
) -> None:
    write(folder, {"broken.json": '{"a": ', "logo.gif": "PNG", "empty.txt": ""})
    result = sync(application, client, folder, collection)
    (error,) = result.errors or []
    assert error.startswith("broken.json: Client error '422")
    assert "oikb/broken.json is no JSON" in error
    assert result.warnings == ["empty.txt: empty content, skipping"]
    assert result.added == 3
    assert len(sources(application, collection)) == 3


@pytest.mark.parametrize(
    "name", ['a "b".txt', "Übung.txt", "a;b=c.txt", "back\\slash.txt", "50%22.txt", "a\nb.txt", " x .txt"]
)
def test_a_name_is_the_same_in_a_manifest_and_in_an_upload(
    application: Application, client: OikbClient, tmp_path: Path, collection: str, name: str
) -> None:
    write(tmp_path / "names", {f"{name} folder/{name}": "Lunch is at noon.\n"})
    assert counts(sync(application, client, tmp_path / "names", collection)) == (1, 0, 0, 0)
    assert counts(sync(application, client, tmp_path / "names", collection)) == (0, 0, 0, 1)


def test_two_runs_at_once_bring_everything_once(
    application: Application, service: str, folder: Path, collection: str
) -> None:
    def run() -> None:
        with OikbClient(service, "none") as client:
            results.append(run_sync(client, FilesystemConnector(folder), collection, quiet=True, concurrency=3))

    for change in ({}, {"food.txt": "Lunch is at one.\n", "new.txt": "New.\n"}):
        write(folder, change)
        results: list[SyncResult] = []
        runs = [threading.Thread(target=run) for _ in range(2)]
        for one in runs:
            one.start()
        for one in runs:
            one.join()
        assert [result.errors for result in results] == [[], []]
        run_jobs(application)
    assert len(texts(application, collection)) == 4
    assert_sound(application, collection)


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    """A folder of as many files as the tests of file systems have, most with a title."""
    folder = tmp_path / "towns"
    write(folder, dict(map(make_page, range(FILES))))
    return folder


def make_page(number: int, length: int = 7) -> tuple[str, str]:
    """Path and text of a file."""
    if number % 4 == 0:  # its title is its name
        return name(number), text(number, length)
    return name(number).replace(".txt", ".md"), f"# Town {number}\n\n{text(number, length)}"


def change(folder: Path) -> None:
    """Change files, move them into a folder, every other one under another name, and delete some."""
    write(folder, dict(make_page(number, 9) for number in range(CHANGED)))
    (folder / "moved").mkdir()
    for number in range(CHANGED, CHANGED + RENAMED):
        before = folder / make_page(number)[0]
        before.rename(folder / "moved" / f"{'town' if number % 2 else 'place'}{number}{before.suffix}")
    for number in range(FILES - DELETED, FILES):
        (folder / make_page(number)[0]).unlink()


def test_only_what_changed_is_uploaded_and_learning_follows(
    application: Application, client: OikbClient, towns: Path, collection: str
) -> None:
    assert counts(sync(application, client, towns, collection)) == (FILES, 0, 0, 0)
    held = [f"Its bridge number {number} is old." for number in range(CHANGED + RENAMED)]
    teach(application, collection, *held)
    change(towns)
    rest = FILES - CHANGED - RENAMED - DELETED
    assert counts(sync(application, client, towns, collection)) == (0, CHANGED, RENAMED + DELETED, rest)
    assert taught(application, collection) == sorted(held)
    assert len(passages(application, collection)) == FILES - DELETED
    assert_sound(application, collection)
    assert counts(sync(application, client, towns, collection)) == (0, 0, 0, FILES - DELETED)


def test_a_killed_run_is_completed_by_the_next(
    application: Application, client: OikbClient, service: str, towns: Path, collection: str, tmp_path: Path
) -> None:
    sync(application, client, towns, collection)
    held = f"Its bridge number {CHANGED} is old."
    teach(application, collection, held)
    change(towns)
    command = [sys.executable, "-c", "from oikb.cli import cli; cli()", "sync", str(towns), "--kb-id", collection]
    environment = os.environ | {"OPEN_WEBUI_URL": service, "OPEN_WEBUI_API_KEY": "none", "NO_PROXY": "*"}
    kill_runs(
        lambda output: subprocess.Popen(command, env=environment, stdout=output, stderr=output),
        tmp_path / "killed",
        seed=3,
    )
    run_jobs(application)
    assert sync(application, client, towns, collection).errors == []
    sync(application, client, towns, f"{collection}-fresh")
    assert_equal(application, collection, f"{collection}-fresh")
    assert taught(application, collection) == [held]


def test_it_takes_the_scope_ingest(
    application: Application, keyed: Keyed, folder: Path, collection: str, http: TestClient
) -> None:
    connector = FilesystemConnector(folder)
    with pytest.raises(httpx.HTTPStatusError, match="403"):
        run_sync(keyed({collection: ["read", "query"]}), connector, collection, quiet=True)
    with pytest.raises(httpx.HTTPStatusError, match="404"):
        run_sync(keyed({"other": ["ingest"]}), connector, collection, quiet=True)
    writer = keyed({collection: ["admin"]})  # sees what has readers
    assert counts(sync(application, writer, folder, collection)) == (3, 0, 0, 0)
    where = {"collection": collection}
    changed = http.patch("/documents/oikb/pay.md", params=where, json={"readers": ["group:hr"]})
    assert changed.raise_for_status().json()["changed"] == 1
    write(folder, {"pay.md": "# Pay\n\nPay day is the second.\n", "new.txt": "New.\n"})
    assert counts(sync(application, writer, folder, collection)) == (1, 1, 0, 2)
    readers = {row["id"]: row["readers"] for row in state.rows(application, collection, "reader_set")}
    found = {
        row["external_id"]: readers.get(row["reader_set_id"])
        for row in state.rows(application, collection, "passage")
    }
    assert found == {
        "oikb/food.txt#1": None,
        "oikb/new.txt#1": [],  # nobody said who may read it, and documents have readers
        "oikb/pay.md#1": ["group:hr"],
        "oikb/travel/trains.md#1": None,
    }
    assert counts(sync(application, writer, folder, collection)) == (0, 0, 0, 4)


@pytest.mark.parametrize(
    ("path", "body", "detail"),
    [
        ("sync/diff", {"manifest": [{"filename": "a.md", "path": ""}]}, "manifest.0.checksum: Field required"),
        ("sync/cleanup", {"file_ids": ["?"]}, "'?' is no id of a file that this service gave."),
        ("dirs/create", {"name": "a", "parent_id": "?"}, "'?' is no id of a directory that this service gave."),
    ],
)
def test_bad_bodies_are_refused(http: TestClient, curie: str, path: str, body: Any, detail: str) -> None:
    answer = http.post(f"/api/v1/knowledge/{curie}/{path}", json=body)
    assert (answer.status_code, answer.json()["detail"]) == (422, detail)


@pytest.mark.parametrize(
    ("form", "detail"),
    [
        ({"metadata": "{"}, "metadata: it is not JSON: unexpected end of data: line 1 column 2 (char 1)."),
        ({"metadata": '{"file_hash": "a"}'}, "knowledge_id: Field required"),
        ({}, "The form takes a field `metadata`, and after it a file `file` with a name."),
    ],
)
def test_bad_forms_are_refused(http: TestClient, form: dict[str, str], detail: str) -> None:
    headers = {"authorization": "Bearer none"}
    answer = http.post("/api/v1/files/", files={"file": ("a.txt", b"A.")}, data=form, headers=headers)
    assert (answer.status_code, answer.json()["detail"]) == (422, detail)


def test_a_directory_is_named_before_files_are_put_there(
    application: Application, client: OikbClient, collection: str
) -> None:
    outer = client.create_directory(collection, "travel")
    inner = client.create_directory(collection, "rail", outer["id"])
    client.upload_file(b"Lunch is at noon.\n", "food.txt", collection, "f", directory_id=inner["id"])
    run_jobs(application)
    assert sources(application, collection) == ["oikb/travel/rail/food.txt"]
    assert client.get_kb(collection)["name"] == collection


@pytest.fixture
def bucket() -> Iterator[Any]:
    """A bucket of S3 with three objects."""
    with open_bucket() as opened:
        for path, content in HANDBOOK.items():
            opened.bucket.put_object(Key=f"docs/{path}", Body=content.encode())
        yield opened.bucket


def test_s3(application: Application, client: OikbClient, collection: str, bucket: Any) -> None:
    assert counts(sync(application, client, S3Connector(bucket.name, "docs"), collection)) == (3, 0, 0, 0)
    teach(application, collection, "Take the train to Basel.")
    bucket.put_object(Key="docs/rail/trains.md", Body=HANDBOOK["travel/trains.md"].encode())
    bucket.Object("docs/travel/trains.md").delete()
    bucket.put_object(Key="docs/food.txt", Body=b"Lunch is at one.\n")
    assert counts(sync(application, client, S3Connector(bucket.name, "docs"), collection)) == (0, 1, 1, 1)
    assert taught(application, collection) == ["Take the train to Basel."]
    assert sources(application, collection) == ["oikb/food.txt", "oikb/pay.md", "oikb/rail/trains.md"]


class GitHub(BaseHTTPRequestHandler):
    """Answers the routes of GitHub's API that the connector asks, over ``files``."""

    files: Mapping[str, str] = {}

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path).removeprefix("/repos/acme/handbook")
        if not path:
            body = b'{"default_branch": "main"}'
        elif path == "/git/trees/main":
            body = json.dumps({"tree": [self._describe(name, text) for name, text in self.files.items()]}).encode()
        else:
            body = self.files[path.removeprefix("/contents/")].encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @staticmethod
    def _describe(name: str, text: str) -> dict[str, Any]:
        data = text.encode()
        blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        return {"path": name, "type": "blob", "sha": blob, "size": len(data)}

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_github(application: Application, client: OikbClient, collection: str) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), GitHub)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def connect(files: Mapping[str, str]) -> GitHubConnector:
        GitHub.files = files
        connector = GitHubConnector("acme", "handbook", token="none")
        vars(connector)["_http"].base_url = f"http://127.0.0.1:{server.server_address[1]}"
        return connector

    code = {"main.py": "print()\n"}  # no document
    assert counts(sync(application, client, connect(HANDBOOK | code), collection)) == (3, 0, 0, 0)
    after = {"travel/trains.md": HANDBOOK["travel/trains.md"], "pay.md": "# Pay\n\nPay day is the second.\n"}
    assert counts(sync(application, client, connect(after | code), collection)) == (0, 1, 1, 1)
    assert sources(application, collection) == ["oikb/pay.md", "oikb/travel/trains.md"]
    server.shutdown()
    server.server_close()
