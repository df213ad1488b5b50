"""NDJSON as it streams in: bad lines by number, all or nothing, one job per Idempotency-Key."""

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from engram.api.corpus import passage_bodies
from engram.composition.container import Application
from engram.context.errors import UnavailableError
from engram.runtime.api_process import create_app
from engram.services.corpus.passage_intake import PassageReception
from tests.api.conftest import Counts
from tests.api.operations import assert_refused
from tests.support.live_server import LiveServer
from tests.support.processes import eventually
from tests.support.strict_client import TestClient

NDJSON = {"content-type": "application/x-ndjson"}


def line(number: int, **more: Any) -> bytes:
    return json.dumps({"id": f"p{number}", "text": f"Passage {number} says nothing.", **more}).encode()


def post(http: TestClient, collection: str, content: Any, **headers: str) -> Any:
    response = http.post(f"/passages?collection={collection}", content=content, headers=NDJSON | headers)
    assert response.status_code == 202, response.text
    assert response.headers["location"] == response.json()["status_url"]
    return response.json()


def job_of(http: TestClient, accepted: Any, **params: int) -> Any:
    return http.get(accepted["status_url"], params={"collection": accepted["collection"], **params}).json()


BAD: dict[bytes, str] = {
    b"{": "not JSON",
    b"[]": "line: ",
    b"1": "line: ",
    b"null": "line: ",
    b'"text"': "line: ",
    b"[" * 5_000: "not JSON",
    b'{"id": "a"}': "text: ",
    b'{"text": "a"}': "id: ",
    b'{"id": "a", "text": " "}': "text: ",
    b'{"id": "a", "text": "\\u200b\\ufeff"}': "text: Value error, must not be blank",
    b'{"id": "' + b"a" * 513 + b'", "text": "b"}': "id: must have at most 512 characters",
    b'{"id": "a", "text": "b", "extra": 1}': "extra: ",
    b'{"id": "a", "text": "b\\u0000"}': "NUL",
    b'{"id": "a", "text": "b\\ud800"}': "not JSON",
    b'{"id": "a", "text": "\xff"}': "not JSON",
    b'{"id": "a", "text": "b", "metadata": {"x": NaN}}': "not JSON",
    b'{"id": "a", "text": "b", "metadata": {"x": 1e400}}': "",
    b'{"id": 1' + b"0" * 400 + b', "text": "b"}': "",
    b'{"id": "a", "text": "b"} {}': "not JSON",
    b"\x00": "not JSON",
    b'{"id": "a", "text": "b", "' + b"k" * 10_000 + b'\\u0000": 1}': "kkk",
}


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: ascii(bad[:24]))
def test_a_bad_line_is_reported_and_the_others_go_on(bad: bytes, http: TestClient, collection: str) -> None:
    job = job_of(http, post(http, collection, b"\n".join([line(1), bad, line(3)])))
    assert (job["received"], job["rejected"], job["waiting"]) == (3, 1, 2)
    assert [error["line"] for error in job["errors"]] == [2]
    assert BAD[bad] in job["errors"][0]["reason"]
    assert 0 < len(job["errors"][0]["reason"]) < 1_000


@pytest.mark.parametrize(
    "content",
    [
        line(1) + b"\r\n" + line(2) + b"\r\n",
        line(1) + b"\n\n  \n\t\n" + line(2),
        b"\xef\xbb\xbf" + line(1) + b"\n" + line(2) + b"\n\n",
        b"\n\n" + line(1) + b"\n" + line(2),
    ],
)
def test_line_ends_blank_lines_and_a_byte_order_mark_do_not_matter(
    content: bytes, http: TestClient, collection: str
) -> None:
    for sent in (content, (content[at : at + 1] for at in range(len(content)))):
        job = job_of(http, post(http, collection, sent))
        assert (job["received"], job["rejected"]) == (2, 0), job["errors"]


def test_first_and_last_line_are_numbered_like_an_editor_does(http: TestClient, collection: str) -> None:
    job = job_of(http, post(http, collection, b"{\n" + line(2) + b"\n\n" + line(4) + b"\n{"))
    assert [error["line"] for error in job["errors"]] == [1, 5]
    assert (job["received"], job["rejected"]) == (4, 2)


def test_too_long_a_line_does_not_take_its_neighbours_along(http: TestClient, collection: str) -> None:
    long = line(2, metadata={"x": "y" * passage_bodies.MAX_LINE_BYTES})
    job = job_of(http, post(http, collection, b"\n".join([line(1), long, line(3), long])))
    assert [error["line"] for error in job["errors"]] == [2, 4]
    assert all("longer than" in error["reason"] for error in job["errors"])
    assert job["waiting"] == 2


def test_thousands_of_lines_and_pages_of_errors(http: TestClient, collection: str) -> None:
    """Every tenth line is bad, the first and the last among them; chunks end anywhere."""
    total = 3_001
    bad = list(range(1, total + 1, 10))
    content = b"\n".join(b"oops" if number in set(bad) else line(number) for number in range(1, total + 1))
    chunks = (content[at : at + 997] for at in range(0, len(content), 997))
    accepted = post(http, collection, chunks)
    seen: list[int] = []
    after: int | None = 0
    while after is not None:
        job = job_of(http, accepted, errors_after=after, errors_limit=70)
        seen += [error["line"] for error in job["errors"]]
        after = job["next_errors_after"]
    assert seen == bad
    assert (job["received"], job["rejected"], job["waiting"]) == (total, len(bad), total - len(bad))
    assert http.delete(f"/collections/{collection}").status_code == 204


@pytest.mark.parametrize("content", [b"", b"\n", b"\n \n\t\r\n", b"\xef\xbb\xbf", b"\n" * 2_000])
def test_a_body_without_lines_is_refused(content: bytes, http: TestClient, collection: str, counts: Counts) -> None:
    before = counts()
    response = http.post(f"/passages?collection={collection}", content=content, headers=NDJSON)
    assert response.status_code == 422
    assert_refused(response)
    assert counts() == before


@pytest.mark.parametrize("kind", ["application/x-ndjson", "application/json"])
def test_a_key_stands_for_one_body(kind: str, http: TestClient, collection: str, counts: Counts) -> None:
    url = f"/passages?collection={collection}"
    headers = {"content-type": kind, "idempotency-key": "once"}
    body, other = ({"passages": [json.loads(line(number))]} for number in (1, 2))
    contents = [json.dumps(body), json.dumps(other)] if kind == "application/json" else [line(1), line(2)]
    first = http.post(url, content=contents[0], headers=headers)
    before = counts()
    again = http.post(url, content=contents[0], headers=headers)
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    conflict = http.post(url, content=contents[1], headers=headers)
    assert conflict.status_code == 422
    assert conflict.json()["type"].endswith("idempotency-conflict")
    assert_refused(conflict)
    assert counts() == before


@pytest.fixture(scope="module")
def live(application: Application) -> Iterator[LiveServer]:
    with LiveServer(create_app(application)) as server:
        yield server


def test_the_same_key_at_once_makes_one_job(http: TestClient, live: LiveServer, collection: str) -> None:
    content = b"\n".join(line(number) for number in range(600))
    barrier = threading.Barrier(6)

    def send(which: int) -> httpx.Response:
        barrier.wait()
        body = content if which % 2 == 0 else content + b"\n" + line(700)
        url = f"{live.url}/passages?collection={collection}"
        return httpx.post(url, content=body, headers=NDJSON | {"idempotency-key": "race"}, timeout=60)

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(send, range(6)))
    winners = {which % 2 for which, answer in enumerate(answers) if answer.status_code == 202}
    assert len(winners) == 1
    assert {answer.status_code for which, answer in enumerate(answers) if which % 2 not in winners} == {422}
    assert len({answer.json()["job_id"] for answer in answers if answer.status_code == 202}) == 1
    with http.app.state.services.database.read() as reader:  # type: ignore[attr-defined]
        jobs = reader.rows(
            "SELECT job.status, job.received FROM job JOIN collection c ON c.id = job.collection_id "
            "WHERE c.name = %(name)s",
            {"name": collection},
        )
    assert [tuple(job) for job in jobs] == [("queued", 600 if winners == {0} else 601)]
    assert http.delete(f"/collections/{collection}").status_code == 204


@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize(("kind", "lines"), [("x-ndjson", 3), ("x-ndjson", 1_200), ("json", 3)])
def test_disconnected_upload_leaves_nothing(
    kind: str, lines: int, announced: bool, live: LiveServer, collection: str, counts: Counts, http: TestClient
) -> None:
    """Also past the first batch, when lines were staged already."""
    before = counts()
    body = b"\n".join(line(number) for number in range(lines)) + b"\n"
    length = f"Content-Length: {len(body) + 100}\r\n" if announced else "Transfer-Encoding: chunked\r\n"
    head = (
        f"POST /passages?collection={collection} HTTP/1.1\r\nHost: x\r\n"
        f"Content-Type: application/{kind}\r\n{length}\r\n"
    )
    with socket.create_connection(live.address) as connection:
        connection.sendall(head.encode() + (body if announced else b"%x\r\n%s\r\n" % (len(body), body)))
        if lines > passage_bodies.LINES_PER_WRITE:
            eventually(lambda: counts()["ingest_line"] >= before["ingest_line"] + passage_bodies.LINES_PER_WRITE)
            assert counts()["collection"] == before["collection"] + 1
            assert http.get(f"/collections/{collection}").status_code == 200
    eventually(lambda: counts() == before)


def test_a_collection_deleted_while_its_lines_arrive_is_not_found(
    http: TestClient, live: LiveServer, collection: str, counts: Counts
) -> None:
    before = counts()

    def body() -> Iterator[bytes]:
        yield b"".join(line(number) + b"\n" for number in range(passage_bodies.LINES_PER_WRITE))
        eventually(lambda: counts()["ingest_line"] == before["ingest_line"] + passage_bodies.LINES_PER_WRITE)
        assert http.delete(f"/collections/{collection}").status_code == 204
        yield line(passage_bodies.LINES_PER_WRITE)

    response = httpx.post(
        f"{live.url}/passages?collection={collection}", content=body(), headers=NDJSON, timeout=60
    )
    assert response.status_code == 404
    assert_refused(response)
    assert counts() == before


def test_a_large_document_is_staged_in_pieces_whole_or_not_at_all(
    http: TestClient, application: Application, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    passages = [{"id": str(number), "text": "word " * 80_000} for number in range(30)]
    sizes: list[int] = []
    add = PassageReception.add

    def record_batch(reception: PassageReception, lines: passage_bodies.Lines, *rest: Any, whole: bool) -> None:
        sizes.append(sum(len(body["text"]) for _, body in lines))
        if len(sizes) == fails_at:
            raise UnavailableError("Postgres is away.")
        add(reception, lines, *rest, whole=whole)

    monkeypatch.setattr(PassageReception, "add", record_batch)
    fails_at = 3
    url = f"/passages?collection={collection}"
    assert http.post(url, json={"passages": passages}).status_code == 503
    assert http.get(f"/collections/{collection}").status_code == 404, "nothing is left of it"
    sizes.clear()
    fails_at = 0
    job = http.post(url, json={"passages": passages}).raise_for_status().json()
    assert max(sizes) < passage_bodies.BYTES_PER_WRITE + 2**20
    assert len(sizes) == 3
    assert http.get(job["status_url"]).json()["received"] == 30
    http.delete(f"/collections/{collection}").raise_for_status()
