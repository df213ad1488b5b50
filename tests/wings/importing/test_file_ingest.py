"""Files are received once their sender may send them, and only so many large ones are in memory."""

import json
from collections.abc import AsyncIterator

import anyio
import httpx
import pytest
from fastapi import Request
from starlette.types import Message

from engram.api.body_reading import ArrivingBody
from engram.api.work_threads import WorkSlots
from engram.context.errors import MalformedRequestError, PayloadTooLargeError
from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from engram.storage.auth.tenants import Quotas
from engram.wings.importing.api import file_ingest
from engram.wings.importing.api.file_ingest import receive_file
from tests.api.conftest import Variant

PIECE = bytes(64 * 1024)
FILE = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'


def write_field(collection: str) -> bytes:
    metadata = json.dumps({"knowledge_id": collection, "file_hash": "a"}).encode()
    return b'--x\r\nContent-Disposition: form-data; name="metadata"\r\n\r\n' + metadata + b"\r\n"


@pytest.mark.parametrize(
    ("head", "passages", "status"),
    [
        (write_field("other") + FILE, None, 404),  # the key is of another collection
        (write_field("no name!") + FILE, None, 422),
        (FILE, None, 422),  # the field comes too late
        (write_field("mine")[:-10] + b" " * len(PIECE), None, 413),
        (write_field("mine") + FILE, 0, 429),
    ],
    ids=["another collection", "no collection", "no field", "a long field", "no room"],
)
@pytest.mark.anyio
async def test_a_file_that_may_not_come_is_not_received(
    variant: Variant, collection: str, head: bytes, passages: int | None, status: int
) -> None:
    guarded = variant(access="keys")
    guarded.auth.access_keys.set_tenant(collection, Quotas(passages=passages))
    wanted = AccessKeyRequest(name="sync", scopes={"mine": ["ingest"]})
    key = guarded.auth.access_keys.make(LOCAL, wanted, collection).key
    received = []

    async def send() -> AsyncIterator[bytes]:
        yield head
        for number in range(100):
            received.append(number)
            yield PIECE

    headers = {"authorization": f"Bearer {key}", "content-type": "multipart/form-data; boundary=x"}
    transport = httpx.ASGITransport(create_app(guarded))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        answer = await http.post("/api/v1/files/", content=send(), headers=headers)
    assert answer.status_code == status, answer.text
    assert len(received) <= 1


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Sender:
    """Sends a body, piece by piece, as a test says so."""

    def __init__(self) -> None:
        self.pieces, self._arriving = anyio.create_memory_object_stream[Message](10)
        self._request = Request({"type": "http", "client": ("127.0.0.1", 1), "headers": []}, self._arriving.receive)
        self.body = ArrivingBody(self._request, 10 * len(PIECE), "It is too large.")
        self.is_whole = anyio.Event()
        self.ends = anyio.Event()

    def send(self, data: bytes, *, more: bool = True) -> None:
        self.pieces.send_nowait({"type": "http.request", "body": data, "more_body": more})

    async def receive(self) -> None:
        """Hold the file until the test ends it."""
        async with receive_file(self._request, self.body):
            self.is_whole.set()
            await self.ends.wait()


@pytest.mark.anyio
async def test_only_so_many_large_files_are_received(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_ingest, "LARGE_FILES", WorkSlots("test", 1))
    first, second, small = Sender(), Sender(), Sender()
    async with anyio.create_task_group() as tasks:
        for one in (first, second):
            tasks.start_soon(one.receive)
            one.send(PIECE)
            one.send(b"a")
            one.send(PIECE)
            await anyio.wait_all_tasks_blocked()
        assert len(first.body.data) == 2 * len(PIECE) + 1
        assert len(second.body.data) == len(PIECE) + 1
        first.send(b"", more=False)
        await first.is_whole.wait()
        tasks.start_soon(small.receive)
        small.send(PIECE, more=False)
        await small.is_whole.wait()
        second.send(b"", more=False)
        await anyio.wait_all_tasks_blocked()
        assert not second.is_whole.is_set(), "the first file is still in memory"
        first.ends.set()
        await second.is_whole.wait()
        assert len(second.body.data) == 2 * len(PIECE) + 1
        second.ends.set()
        small.ends.set()


@pytest.mark.anyio
async def test_a_sender_keeps_a_place_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_ingest, "LARGE_FILES", WorkSlots("test", 1))
    monkeypatch.setattr(file_ingest, "ARRIVAL_SECONDS", 0.05)
    slow, next_one = Sender(), Sender()
    slow.send(PIECE + b"a")
    with pytest.raises(MalformedRequestError, match="within"):
        await slow.receive()
    next_one.send(PIECE + b"a")
    next_one.send(b"", more=False)
    next_one.ends.set()
    await next_one.receive()


@pytest.mark.anyio
async def test_a_body_that_is_too_large_or_breaks_off_is_refused() -> None:
    large, broken = Sender(), Sender()
    large.send(PIECE * 10 + b"a")
    with pytest.raises(PayloadTooLargeError):
        await large.receive()
    broken.send(b"a")
    broken.pieces.send_nowait({"type": "http.disconnect"})
    with pytest.raises(MalformedRequestError):
        await broken.receive()
