"""Commands that look, conditions on metadata, answers with nothing in them, and how the command line starts."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import pytest

from engram.cli import cli as application_of_commands
from engram.cli.http_client import ClientError
from engram.cli.metadata_filters import as_filter
from engram.cli.terminal import HEADINGS
from tests.conftest import Ingest
from tests.support.command import UNREACHABLE_URL, Cli
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"


def run_lines(cli: Cli, *arguments: str) -> list[str]:
    done = cli(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


class TestStart:
    def test_little_is_imported_for_help(self) -> None:
        slow = ("pydantic", "httpx", "structlog", "rich", "numpy", "sqlalchemy", "engram.config.settings")
        program = f"import sys, engram.cli; print(*[name for name in {slow!r} if name in sys.modules])"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout == "\n"

    def test_a_client_s_command_reads_no_settings(self) -> None:
        program = f"""
import sys
sys.argv = ["engram", "query", "?", "--url", {UNREACHABLE_URL!r}]
import engram.cli
try:
    engram.cli.main()
except SystemExit:
    slow = ("engram.config.settings", "structlog", "httpx._main", "numpy")
    print(*[name for name in slow if name in sys.modules])
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout == "\n"

    def test_help_is_in_groups(self, cli: Cli) -> None:
        shown = "\n".join(run_lines(cli, "--help"))
        places = [shown.index(f" {heading} ") for heading in HEADINGS]
        assert places == sorted(places)
        assert " Commands " not in shown, "a command without a heading"
        assert {command.rich_help_panel for command in application_of_commands.registered_commands} <= set(HEADINGS)

    def test_version(self, cli: Cli) -> None:
        assert run_lines(cli, "--version") == [f"engram {version('engram')}"]

    @pytest.mark.parametrize(
        ("env", "expected"),
        [
            ({"ENGRAM_URL": "http://127.0.0.1:2"}, "http://127.0.0.1:2"),
            ({"ENGRAM_URL": "", "ENGRAM_PORT": "3"}, "http://127.0.0.1:3"),
            ({"ENGRAM_URL": ""}, "http://127.0.0.9:4"),
        ],
    )
    def test_the_address_is_that_of_the_settings(
        self, env: dict[str, str], expected: str, cli: Cli, tmp_path: Path
    ) -> None:
        if "ENGRAM_PORT" not in env:
            (cli.folder / ".env").write_text("ENGRAM_HOST=127.0.0.9\nENGRAM_PORT=4\n")
        said = cli.fails("status", **env)
        assert f"{expected} is out of reach" in said
        assert said.endswith("Is `engram up` running? --url or ENGRAM_PORT say where it answers.\n")

    def test_without_settings_the_service_of_the_data_folder_is_asked(self, cli: Cli, tmp_path: Path) -> None:
        (tmp_path / "address").write_text(f"{cli.service}\n")
        found = cli("status", ENGRAM_URL="", ENGRAM_DATA_DIR=str(tmp_path))
        assert found.stdout.startswith(f"{cli.service}: "), found.stderr
        refused = cli.fails("status", ENGRAM_URL="", ENGRAM_PORT="3", ENGRAM_DATA_DIR=str(tmp_path))
        assert "http://127.0.0.1:3 is out of reach" in refused


class TestListings:
    def test_status(self, cli: Cli) -> None:
        first, *rest = run_lines(cli, "status")
        assert first.startswith(f"{cli.service}: ")
        assert {line.split()[0] for line in rest} >= {
            "postgres",
            "redis",
            "workers",
            "encoder",
            "language",
            "oldest",
        }
        assert json.loads(cli("status", "--json").stdout)["postgres"] == "ok"

    def test_collections(self, cli: Cli, curie: str) -> None:
        headings, *rows = run_lines(cli, "collection", "list", "--limit", "1000")
        assert headings.split()[:2] == ["collection", "passages"]
        assert next(row.split()[:2] for row in rows if row.startswith(curie)) == [curie, "5"]
        listed = json.loads(cli("collection", "list", "--after", curie, "--json").stdout)["collections"]
        assert curie not in {one["name"] for one in listed}

    def test_passages(self, cli: Cli, curie: str) -> None:
        listed = run_lines(cli, "passage", "list", "-c", curie, "--limit", "2")
        assert listed[0] == (
            "curie  Marie Curie: Marie Curie was born in Warsaw in 1867. Marie Curie discovered polonium in 1898."
        )
        assert listed[2] == f"more: engram passage list -c {curie} --after polonium"
        shown = run_lines(cli, "passage", "show", "tokyo", "-c", curie)
        assert shown[0] == "tokyo  Tokyo"
        assert shown[2].endswith("] Tokyo lies on Tokyo Bay.")
        assert "no passage 'nowhere'" in cli.fails("passage", "show", "nowhere", "-c", curie)

    def test_passages_are_deleted(self, cli: Cli, curie: str) -> None:
        assert run_lines(cli, "passage", "delete", "tokyo", "vistula", "-c", curie) == [
            "tokyo: deleted",
            "vistula: deleted",
        ]
        assert "no passage 'tokyo'" in cli.fails("passage", "show", "tokyo", "-c", curie)
        assert "no passage 'tokyo'" in cli.fails("passage", "delete", "tokyo", "-c", curie)

    def test_a_collection_is_deleted_once_that_is_confirmed(self, cli: Cli, curie: str) -> None:
        assert cli("collection", "delete", "-c", curie).returncode != 0  # nobody answers
        assert run_lines(cli, "collection", "show", "-c", curie)[0].startswith(f"{curie}: 5 passages")
        assert cli("collection", "delete").returncode == 2
        assert run_lines(cli, "collection", "delete", "-c", curie, "--yes") == [
            f"{curie}: deleted, with 5 passages"
        ]
        assert "no collection" in cli.fails("collection", "show", "-c", curie)


class TestFilter:
    @pytest.mark.parametrize(
        ("conditions", "expected"),
        [
            (None, None),
            (["topic=space"], {"topic": "space"}),
            (["year=1990", "open=true", "name=a=b"], {"year": 1990, "open": True, "name": "a=b"}),
            (['{"tags": ["x"]}', "topic=space"], {"tags": ["x"], "topic": "space"}),
        ],
    )
    def test_conditions_become_a_filter(
        self, conditions: list[str] | None, expected: dict[str, Any] | None
    ) -> None:
        assert as_filter(conditions) == expected

    @pytest.mark.parametrize("odd", ["topic", "=space", "{", "{1}"])
    def test_malformed_filter_is_refused(self, odd: str) -> None:
        with pytest.raises(ClientError, match="--filter"):
            as_filter([odd])

    @pytest.mark.parametrize("second", ["topic=rockets", '{"year": 1990, "topic": "space"}'])
    def test_a_second_condition_on_one_key_is_refused(self, second: str) -> None:
        with pytest.raises(ClientError, match=r"^--filter .* on 'topic' already\.$"):
            as_filter(["topic=space", second])

    def test_it_reaches_the_search(self, cli: Cli, ingest: Ingest, collection: str) -> None:
        ingest(
            {"id": "a", "text": "Titan is a moon of Saturn.", "metadata": {"topic": "space"}},
            {"id": "b", "text": "Titan is a rocket.", "metadata": {"topic": "rockets"}},
        )
        found = json.loads(cli("query", "Titan?", "-c", collection, "--filter", "topic=rockets", "--json").stdout)
        assert [passage["passage_id"] for passage in found["passages"]] == ["b"]
        compared = json.loads(
            cli("compare", "Titan?", "-c", collection, "--filter", "topic=space", "--json").stdout
        )
        assert [passage["passage_id"] for passage in compared["passages"]] == ["a"]
        nothing = run_lines(cli, "query", "Titan?", "-c", collection, "--filter", "topic=cooking")
        assert nothing[1].startswith(f"No passage of {collection} near the question (2 in all) has metadata")


class TestEmptyAnswers:
    def test_an_empty_collection(self, cli: Cli, curie: str, http: TestClient) -> None:
        for name in ("curie", "warsaw", "vistula", "polonium", "tokyo"):
            assert http.delete(f"/passages/{name}", params={"collection": curie}).status_code == 204
        assert run_lines(cli, "query", QUESTION, "-c", curie)[1] == (
            f"{curie} holds no passage: engram ingest FILE -c {curie}"
        )
        http.post("/passages", json={"collection": curie, "passages": [{"id": "a", "text": "A."}]})
        assert "Jobs under way: 1 (" in run_lines(cli, "query", QUESTION, "-c", curie)[1]

    def test_query_reports_that_no_passage_is_near(self, cli: Cli, curie: str) -> None:
        lines = run_lines(cli, "query", "zxqv", "-c", curie, "--strategy", "lexical")
        assert lines[1].startswith(f"Nothing in 5 passages of {curie} shares a name or a meaning")


class GoesAway(BaseHTTPRequestHandler):
    """A service that is killed while it takes a file, and again while the job is followed."""

    keys: ClassVar[list[str]] = []
    bodies: ClassVar[list[bytes]] = []
    asked: ClassVar[int] = 0

    def do_POST(self) -> None:
        GoesAway.keys.append(self.headers["idempotency-key"])
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        GoesAway.bodies.append(body)
        if len(self.bodies) > 1:
            self._answer(202, {"job_id": "j-1", "collection": "c", "status_url": "/jobs/j-1?collection=c"})

    def do_GET(self) -> None:
        GoesAway.asked += 1
        if self.asked == 1:
            return  # the connection ends without an answer
        if self.asked == 2:
            self._answer(503, {"title": "Temporarily unavailable", "detail": "starting"})
            return
        counts = {"received": 1, "created": 1, "updated": 0, "unchanged": 0, "rejected": 0, "waiting": 0}
        end = {"status": "succeeded", "errors": [], "next_errors_after": None, "error": None, "result": None}
        self._answer(200, counts | end)

    def _answer(self, code: int, document: dict[str, Any]) -> None:
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test output quiet."""


@contextmanager
def serve(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_ingest_survives_that_the_service_goes_away(cli: Cli, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"id": "a", "text": "A."}\n')
    with serve(GoesAway) as url:
        done = cli("ingest", str(corpus), "-c", "c", "--url", url)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "corpus.jsonl: 1 created, 0 updated, 0 unchanged, 0 rejected\n"
    assert GoesAway.bodies == [corpus.read_bytes()] * 2
    assert len(set(GoesAway.keys)) == 1
    assert "Sending it again" in done.stderr
    assert "job j-1; engram job list -c c shows it" in done.stderr
    assert done.stderr.count("The job goes on without; waiting") == 1


def test_jobs_of_an_ingest_as_json(cli: Cli, collection: str, tmp_path: Path) -> None:
    done = cli("ingest", str(tmp_path / "missing.jsonl"), "-c", collection, "--json")
    assert (done.returncode, done.stdout) == (1, "")
    with serve(GoesAway) as url:
        corpus = tmp_path / "corpus.jsonl"
        corpus.write_text('{"id": "a", "text": "A."}\n')
        (job,) = json.loads(cli("ingest", str(corpus), "--url", url, "--json").stdout)["jobs"]
    assert (job["status"], job["created"]) == ("succeeded", 1)
