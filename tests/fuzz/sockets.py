"""Requests that no HTTP library would send, each cut off in its own way; number and seed say which one."""

import contextlib
import random
import socket
import struct
import time
from collections.abc import Sequence

from tests.fuzz.ledger import Ledger

PATIENCE_SECONDS = 60.0
METHODS = (b"GET", b"POST", b"POST", b"DELETE", b"OPTIONS", b"get", b"FUZZ", b"", b"GET GET", b"\x00", b"P" * 300)
TARGETS = (
    b"/healthz", b"/query", b"/feedback", b"/passages?collection=fuzz-sockets", b"*", b"http://127.0.0.1/healthz",
    b"//", b"/%", b"/%00", b"/\xff", b"/" + b"a" * 70_000, b"/q?" + b"&" * 5_000, b"example.org:443", b"",
)  # fmt: skip
VERSIONS = (b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/0.9", b"HTTP/2.0", b"HTTP/9.9", b"", b"HTTP/1.1 ")
HEADERS = (
    b"Host: 127.0.0.1", b"Host: evil.example", b"Host:", b"Content-Length: 20", b"Content-Length: -1",
    b"Content-Length: 5\r\nContent-Length: 6", b"Content-Length: 99999999999999999999", b"Content-Length: 1_0",
    b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked\r\nContent-Length: 3",
    b"Transfer-Encoding: xchunked", b"Transfer-Encoding: chunked, identity", b"Connection: close",
    b"Connection: upgrade\r\nUpgrade: websocket",
    b"Expect: 100-continue", b"X: " + b"y" * 70_000, b" folded", b"no colon", b"X\x00: y", b": empty", b"X : y",
    b"\xff: \xff", b"Content-Type: application/json", b"Content-Type: application/x-ndjson",
    b"Idempotency-Key: sockets", b"\n".join(b"H%d: x" % at for at in range(300)),
)  # fmt: skip
BODIES = (
    b"", b"{}", b'{"query": "Where?"}', b"\n" * 5_000, b"2\r\n{}\r\n0\r\n\r\n", b"FFFFFFFFFFFFFFFF\r\n{}",
    b"zz\r\n", b"2;x=" + b"y" * 50_000 + b"\r\n{}\r\n0\r\n\r\n", b"-1\r\n", b"2\r\n{}\r\n0\r\nTrailer: x\r\n\r\n",
    b"\x00" * 20,
    b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 20,
)  # fmt: skip
OPENINGS = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\r\n" * 50,
    b"\x00" * 500, b"SSH-2.0-x\r\n", b"\r\n\r\n",
)  # fmt: skip
ENDINGS = ("close", "reset", "half", "wait", "trickle")


def request(dice: random.Random) -> bytes:
    """What is sent."""
    if dice.randrange(10) == 0:
        return dice.choice(OPENINGS)
    line = b" ".join((dice.choice(METHODS), dice.choice(TARGETS), dice.choice(VERSIONS)))
    headers = dice.sample(HEADERS, dice.randint(0, 5))
    end = dice.choice((b"\r\n", b"\r\n", b"\r\n", b"\n"))
    whole = end.join([line, *headers, b"", b""]) + dice.choice(BODIES)
    if dice.randrange(4) == 0:
        at = dice.randrange(len(whole))
        whole = whole[:at] + dice.randbytes(dice.randint(1, 20)) + whole[at + 1 :]
    return whole[: dice.randint(1, len(whole))] if dice.randrange(4) == 0 else whole


def send(address: tuple[str, int], seed: int, number: int, ledger: Ledger) -> None:
    """Send the request of this number, end it in its way, and see that the connection comes to an end."""
    dice = random.Random(f"{seed}/socket/{number}")
    said = request(dice)
    ending = dice.choice(ENDINGS)
    where = f"socket ({ending})"
    began = time.monotonic()
    sent = f"number {number}: {said[:200]!r} ({len(said)} bytes)"
    try:
        with socket.create_connection(address, timeout=PATIENCE_SECONDS) as connection:
            with contextlib.suppress(ConnectionError):  # it may well be cut off while it sends
                connection.sendall(said)
            answer = _read_to_end(connection, ending)
    except TimeoutError:
        ledger.record_hang("sockets", where, sent)
        return
    except ConnectionError:
        answer = b""
    seconds = time.monotonic() - began
    # A trickle and an idle connection last as long as the service lets them.
    ledger.record_answer(
        "sockets", where, _status(answer), 0.0 if ending in {"wait", "trickle"} else seconds, b"", sent
    )
    if answer and not answer.startswith(b"HTTP/1."):
        ledger.record_finding("no HTTP", where, f"{sent} -> {answer[:100]!r}")


def _read_to_end(connection: socket.socket, ending: str) -> bytes:
    """All that is said until the connection ends."""
    if ending == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return b""
    if ending == "close":
        connection.settimeout(0.2)
        with contextlib.suppress(TimeoutError, ConnectionError):
            return connection.recv(65_536)
        return b""
    if ending == "half":
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
    answer = b""
    deadline = time.monotonic() + PATIENCE_SECONDS
    connection.settimeout(0.5 if ending == "trickle" else PATIENCE_SECONDS)
    with contextlib.suppress(ConnectionError):
        while time.monotonic() < deadline:
            try:
                block = connection.recv(65_536)
            except TimeoutError:
                if ending != "trickle":
                    raise
                connection.sendall(b"x")
                continue
            if not block:
                return answer
            answer = (answer + block)[:200_000]
        raise TimeoutError
    return answer


def _status(answer: bytes) -> int:
    """Of the last answer that begins here, 0 if none does."""
    parts: Sequence[bytes] = answer.split(b" ", 2)
    return int(parts[1]) if len(parts) > 1 and parts[0].startswith(b"HTTP/1.") and parts[1][:3].isdigit() else 0


def flood(address: tuple[str, int], connections: int) -> None:
    """Leave so many posts half sent, and hang up."""
    held = []
    for _ in range(connections):
        with contextlib.suppress(OSError):
            one = socket.create_connection(address, timeout=5)
            held.append(one)
            one.sendall(b"POST /query HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")
    time.sleep(1)
    for one in held:
        one.close()
