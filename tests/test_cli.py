"""The ``engram`` command as people run it, against a live service: its output, and one line for each failure."""

import gzip
import io
import json
import os
import re
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from engram.cli.http_client import Client, open_corpus
from engram.cli.terminal import base_url
from engram.composition.container import Application
from engram.config.settings import Settings
from engram.runtime.api_process import create_app
from engram.runtime.worker import Worker
from engram.storage.corpus import collections
from tests.conftest import CURIE
from tests.support import state
from tests.support.command import UNREACHABLE_URL, Cli
from tests.support.live_server import LiveServer
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"


@pytest.fixture(scope="module")
def service(application: Application) -> Iterator[str]:
    """Base URL of a running API with a running worker."""
    worker = Worker(application)
    thread = threading.Thread(target=worker.run)
    thread.start()
    with LiveServer(create_app(application)) as server:
        yield server.url
    worker.stop()
    thread.join()


@pytest.fixture
def curie(service: str, collection: str) -> str:
    """As everywhere, but indexed by the running worker, which may take a job out of the test's own hands."""
    with Client(service) as client:
        accepted = client.ingest(io.BytesIO("\n".join(map(json.dumps, CURIE)).encode()), collection)
        *_, job = client.follow(accepted["job_id"], collection)
    assert job["created"] == len(CURIE)
    return collection


def write(path: Path, *lines: str) -> Path:
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def beir(number: int) -> str:
    """A line of a BEIR corpus."""
    text = f"Passage {number} names Marie Curie. It says little else."
    return json.dumps({"_id": f"p{number}", "title": f"Passage {number}", "text": text, "metadata": {}})


def test_plain_and_compressed_files_are_ingested(
    cli: Cli, collection: str, tmp_path: Path, http: TestClient
) -> None:
    plain = write(tmp_path / "corpus[bold].jsonl", *(beir(number) for number in range(30)))
    packed = write(tmp_path / "corpus.jsonl.gz", *(beir(number) for number in range(20, 50)))
    done = cli("ingest", str(plain), str(packed), "-c", collection)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "corpus[bold].jsonl: 30 created, 0 updated, 0 unchanged, 0 rejected",
        "corpus.jsonl.gz: 20 created, 0 updated, 10 unchanged, 0 rejected",
    ]
    assert "30/30" in done.stderr  # the progress bar at its end
    assert http.get(f"/collections/{collection}").json()["passage_count"] == 50


def test_bad_lines_are_named_and_the_others_ingested(cli: Cli, collection: str, tmp_path: Path) -> None:
    lines = [beir(number) if number % 2 else "{" for number in range(1, 31)]
    done = cli("ingest", str(write(tmp_path / "corpus.jsonl", *lines)), "-c", collection)
    assert done.returncode == 1
    assert done.stdout == "corpus.jsonl: 15 created, 0 updated, 0 unchanged, 15 rejected\n"
    named = re.findall(r"^corpus.jsonl: line (\d+): not JSON", done.stderr, re.MULTILINE)
    assert named == [str(number) for number in range(2, 21, 2)]
    assert re.search(r"^corpus.jsonl: more of them: GET /jobs/\S+errors_after=20$", done.stderr, re.MULTILINE)


def broken_gzip(path: Path) -> Path:
    path.write_bytes(gzip.compress(beir(1).encode() * 100)[:-20])
    return path


def corrupt_gzip(path: Path) -> Path:
    content = bytearray(gzip.compress(os.urandom(10_000)))
    content[2_000:2_100] = b"\xff" * 100
    path.write_bytes(bytes(content))
    return path


def document(path: Path) -> Path:
    """Write bytes that are no text, packed where the name says so."""
    content = b"%PDF-1.7\n\xe2\xe3\xcf\xd3\n\x00"
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def test_a_character_that_a_read_cuts_in_two_is_still_text(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text("\N{EURO SIGN}" * 200_000, encoding="utf-8")  # three bytes each: a power of two ends within one
    with open_corpus(path) as stream:
        assert len(stream.read()) == 600_000


def test_a_file_without_a_passage_points_to_import(cli: Cli, collection: str, tmp_path: Path) -> None:
    done = cli("ingest", str(write(tmp_path / "notes.md", "# Notes", "", "Bees fly.")), "-c", collection)
    assert done.returncode == 1
    assert "notes.md: no line of it is a passage. `engram import` reads documents." in done.stderr.splitlines()


def test_unreadable_files_fail_in_one_line(cli: Cli, collection: str, tmp_path: Path, http: TestClient) -> None:
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "plain.gz").write_text(beir(1))
    said = {
        "missing.jsonl": "No such file",
        "missing.gz": "No such file",
        ".": "Is a directory",
        "plain.gz": "Not a gzipped file",
        broken_gzip(tmp_path / "broken.gz").name: "ended before",
        corrupt_gzip(tmp_path / "corrupt.gz").name: "corrupt.gz",
        "empty.jsonl": "holds no line",
        document(tmp_path / "my handbook.pdf").name: "`engram import 'my handbook.pdf'` reads documents",
        document(tmp_path / "handbook.gz").name: "`engram import handbook.gz` reads documents",
    }
    for name, expected in said.items():
        done = cli("ingest", name, "-c", collection)
        assert done.returncode == 1, name
        assert done.stdout == ""
        last = done.stderr.splitlines()[-1]  # below the progress bar, where there is one
        assert last.startswith("engram: "), done.stderr
        assert expected in last
        assert "Traceback" not in done.stderr
    assert http.get(f"/collections/{collection}").status_code == 404


def test_a_question_and_its_verdict(cli: Cli, curie: str) -> None:
    asked = cli("query", QUESTION, "-c", curie, "--top-k", "2", "--trace")
    assert asked.returncode == 0, asked.stderr
    first, *rest = asked.stdout.splitlines()
    query_id = re.fullmatch(r"query (\S+): \d hops?, \w+, sufficiency \d+%", first)[1]  # type: ignore[index]
    sentence = next(line for line in rest if "Marie Curie was born in Warsaw in 1867." in line)
    identity = re.match(r"\s+\[(\d+)\] ", sentence)[1]  # type: ignore[index]
    assert any(line.startswith("hop 1: ") for line in rest)
    judged = cli("feedback", query_id, "-c", curie, "-s", identity, "--key", f"cli-{curie}")
    assert judged.returncode == 0, judged.stderr
    applied, *changes = judged.stdout.splitlines()
    assert re.fullmatch(r"feedback \d+: applied", applied)
    assert changes[:2] == ["     supported:", f"     [{identity}] Marie Curie was born in Warsaw in 1867."]
    assert changes[-1] == "     rejected: none"
    assert any(line.startswith("# semantic: how near") for line in rest)
    assert f"1. curie  {rest[0].split()[2]}  Marie Curie" == rest[0]
    assert any(f"[{identity}] task: gain 0." in line for line in changes)
    again = cli("feedback", query_id, "-c", curie, "-s", identity, "--key", f"cli-{curie}")
    assert again.stdout == judged.stdout
    assert "used before" in cli.fails("feedback", query_id, "-c", curie, "--key", f"cli-{curie}")
    answer = json.loads(
        cli("query", QUESTION, "-c", curie, "--json", "--memory", "off", "--profile", "paper").stdout
    )
    assert (answer["memory"], answer["profile"], answer["trace"]) == ("off", "paper", None)
    receipt = json.loads(cli("feedback", answer["query_id"], "-c", curie, "--json").stdout)
    assert receipt["status"] == "applied"


def test_a_judged_sentence_that_the_answer_does_not_show_has_its_text(
    cli: Cli, application: Application, curie: str
) -> None:
    text, sentence = next(iter(state.sentences(application, curie, "tokyo").items()))
    answer = json.loads(cli("query", QUESTION, "-c", curie, "--top-k", "1", "--json").stdout)
    judged = cli("feedback", answer["query_id"], "-c", curie, "-s", str(sentence))
    assert f"     [{sentence}] {text}" in judged.stdout.splitlines(), judged.stderr


def test_an_answer_is_rated(cli: Cli, curie: str) -> None:
    answer = json.loads(cli("query", QUESTION, "-c", curie, "--json").stdout)
    up = cli("thumb", answer["query_id"], "-c", curie, "--cited", "curie")
    applied, *changes = up.stdout.splitlines()
    assert re.fullmatch(r"feedback \d+: applied", applied), up.stderr
    assert changes[:3] == ["     supported: none", "     rejected: none", "     stand for passages that helped:"]
    assert re.match(r"     \[\d+\] Marie Curie", changes[3])
    down = json.loads(cli("thumb", answer["query_id"], "down", "-c", curie, "--reason", "missing", "--json").stdout)
    assert (down["status"], down["changes"]) == ("applied", [])
    assert "applied" in cli("thumb", answer["query_id"], "none", "-c", curie).stdout
    assert "up, down or none" in cli.fails("thumb", answer["query_id"], "sideways", "-c", curie)
    assert "thumb down" in cli.fails("thumb", answer["query_id"], "up", "-c", curie, "--reason", "missing")


def test_a_question_is_widened(cli: Cli, curie: str) -> None:
    widened = cli("expand", QUESTION, "-c", curie)
    assert widened.returncode == 0, widened.stderr
    assert re.fullmatch(r"prf  .*\bWarsaw\b.*\n", widened.stdout)
    document = json.loads(cli("expand", QUESTION, "-c", curie, "--method", "prf", "--json").stdout)
    (unit,) = document["expansions"]
    assert widened.stdout == f"prf  {unit['text']}\n"
    first = json.loads(cli("expand", QUESTION, "-c", curie, "--passages", "1", "--json").stdout)
    assert first["expansions"] != document["expansions"]
    assert "Warsaw" in first["expansions"][0]["text"]


def test_a_question_is_asked_in_another_way(cli: Cli, curie: str, tmp_path: Path) -> None:
    units = tmp_path / "units.json"
    units.write_text(cli("expand", QUESTION, "-c", curie, "--json").stdout, encoding="utf-8")
    for strategy in ("dense", "lexical", "hybrid"):
        asked = cli("query", QUESTION, "-c", curie, "--strategy", strategy, "--trace")
        assert asked.returncode == 0, asked.stderr
        assert re.match(r"query \S+: 0 hops, no_hops\n1\. curie  ", asked.stdout)
        answer = json.loads(
            cli("query", QUESTION, "-c", curie, "--strategy", strategy, "--expansions", str(units), "--json").stdout
        )
        assert (answer["strategy"], answer["expanded"]) == (strategy, True)
    assert "Invalid request" in cli.fails("query", QUESTION, "-c", curie, "--strategy", "sparse")
    assert "No such file" in cli.fails("query", QUESTION, "-c", curie, "--expansions", "missing.json")
    for content in ("", "{}", "1", '{"expansion": []}', "\xff"):
        units.write_bytes(content.encode("latin-1"))
        said = cli.fails("query", QUESTION, "-c", curie, "--expansions", str(units))
        assert "not what `engram expand --json` prints" in said
    units.write_text('{"expansions": [{"method": "prf"}]}', encoding="utf-8")
    assert "Invalid request" in cli.fails("query", QUESTION, "-c", curie, "--expansions", str(units))


def test_a_question_that_nothing_widens(cli: Cli, collection: str, application: Application) -> None:
    with application.database.write() as writer:
        collections.open_for_writing(writer, collection, application.models.encoder.id)
    widened = cli("expand", QUESTION, "-c", collection)
    assert (widened.returncode, widened.stdout) == (0, "prf  (nothing found)\n")


def test_refusals_to_widen_are_one_line(cli: Cli, curie: str) -> None:
    assert "'hyde' needs ENGRAM_LLM_BASE_URL" in cli.fails(
        "expand", QUESTION, "-c", curie, "--method", "prf", "--method", "hyde"
    )
    assert "must not repeat" in cli.fails("expand", QUESTION, "-c", curie, "--method", "prf", "--method", "prf")
    assert "Invalid request" in cli.fails("expand", QUESTION, "-c", curie, "--method", "magic")
    assert "no collection 'nowhere'" in cli.fails("expand", QUESTION, "-c", "nowhere")


def test_a_collection_is_rekeyed(cli: Cli, curie: str, http: TestClient) -> None:
    done = cli("collection", "rekey", "-c", curie, "--key-building", "title")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{curie}: keys are made of title, 5 updated, 0 unchanged\n"
    assert "5/5" in done.stderr  # the progress bar at its end
    assert http.get(f"/collections/{curie}").json()["key_building"] == "title"

    again = cli("collection", "rekey", "-c", curie, "--key-building", "title", "--key", "again")
    assert again.stdout == f"{curie}: keys are made of title, 0 updated, 5 unchanged\n"
    assert "used before" in cli.fails(
        "collection", "rekey", "-c", curie, "--key-building", "full", "--key", "again"
    )
    assert "Invalid request: body.key_building" in cli.fails(
        "collection", "rekey", "-c", curie, "--key-building", "titles"
    )
    assert "no collection 'nowhere'" in cli.fails("collection", "rekey", "-c", "nowhere", "--key-building", "title")
    assert "Invalid request: path.name" in cli.fails("collection", "rekey", "-c", "a b", "--key-building", "title")
    assert "cannot be sent" in cli.fails(
        "collection", "rekey", "-c", curie, "--key-building", "title", "--key", "schlüssel"
    )


def test_a_collection_is_reembedded(cli: Cli, curie: str) -> None:
    assert "runs all-MiniLM-L6-v2" in cli.fails("collection", "reembed", "-c", curie)
    assert "--drop and --model do not go together" in cli.fails(
        "collection", "reembed", "-c", curie, "--drop", "--model", "x"
    )
    assert "no collection 'nowhere'" in cli.fails("collection", "reembed", "-c", "nowhere", "--drop")
    done = cli("collection", "reembed", "-c", curie, "--model", "all-MiniLM-L6-v2")  # which it is of already
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{curie}: all-MiniLM-L6-v2 serves, 0 vectors\n"
    assert (
        cli("collection", "reembed", "-c", curie, "--drop").stdout
        == f"{curie}: 0 vectors that did not serve are gone\n"
    )


def test_refusals_of_the_service_are_one_line(cli: Cli, curie: str) -> None:
    unknown = str(uuid.uuid4())
    assert "no collection 'nowhere'" in cli.fails("query", QUESTION, "-c", "nowhere")
    assert "Invalid request" in cli.fails("query", " ", "-c", curie)
    assert "Invalid request" in cli.fails("query", QUESTION, "-c", "no name")
    assert "Invalid request" in cli.fails("query", QUESTION, "-c", curie, "--memory", "perhaps")
    assert "no query" in cli.fails("feedback", unknown, "-c", curie, "--none-helped")
    assert "say what helped" in cli.fails("feedback", unknown, "-c", curie, "--complete")
    assert "query_id" in cli.fails("feedback", "not-an-id", "-c", curie)
    assert "cannot be sent" in cli.fails("query", b"\xff", "-c", curie)
    assert "cannot be sent" in cli.fails("feedback", unknown, "-c", curie, "--key", "schlüssel")
    assert "printable ASCII" in cli.fails("feedback", unknown, "-c", curie, "--none-helped", "--key", "a b")


class NotEngram(BaseHTTPRequestHandler):
    """Answers everything with a page."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", "0")))
        self.send_response(500 if "fail" in self.path else 200)
        self.end_headers()
        self.wfile.write(b"<html>welcome</html>")

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test output quiet."""


def test_a_service_that_is_not_there_or_not_engram(cli: Cli, tmp_path: Path) -> None:
    corpus = str(write(tmp_path / "corpus.jsonl", beir(1)))
    for command in (["query", QUESTION], ["feedback", str(uuid.uuid4())]):
        assert "is `engram up` running?" in cli.fails(*command, "--url", UNREACHABLE_URL).lower()
    for command in (["ingest", corpus], ["sample"]):
        done = cli(*command, ENGRAM_URL=UNREACHABLE_URL)
        assert done.returncode == 1
        assert "out of reach" in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr
    for odd in ("nonsense", "http://", "ftp://127.0.0.1", "http://[", "http://127.0.0.1:99999", ""):
        assert "Traceback" not in cli("query", QUESTION, "--url", odd or "http:///").stderr
        cli.fails("query", QUESTION, "--url", odd or "http:///")
    other = HTTPServer(("127.0.0.1", 0), NotEngram)
    thread = threading.Thread(target=other.serve_forever, args=(0.01,))
    thread.start()
    url = f"http://127.0.0.1:{other.server_address[1]}"
    try:
        assert "not Engram" in cli.fails("query", QUESTION, "--url", url)
        assert "HTTP 500" in cli.fails("query", QUESTION, "--url", f"{url}/fail")
    finally:
        other.shutdown()
        thread.join()
        other.server_close()


def test_an_address_without_a_scheme_is_one_of_http(cli: Cli, curie: str) -> None:
    host_and_port = cli.service.removeprefix("http://")
    assert cli("query", QUESTION, "-c", curie, "--url", host_and_port).returncode == 0
    assert cli("query", QUESTION, "-c", curie, ENGRAM_URL=f"{host_and_port}/").returncode == 0
    assert base_url("localhost:8000") == "http://localhost:8000"


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_a_host_of_ipv6_is_in_brackets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENGRAM_HOST", host)
    assert base_url(None) == Settings().base_url == "http://[::1]:8000"


def test_a_proxy_of_the_environment_does_not_stand_between(cli: Cli, curie: str) -> None:
    done = cli(
        "query",
        QUESTION,
        "-c",
        curie,
        HTTP_PROXY=UNREACHABLE_URL,
        http_proxy=UNREACHABLE_URL,
        ALL_PROXY=UNREACHABLE_URL,
    )
    assert done.returncode == 0, done.stderr
