"""Clients that are slow on purpose, by raw sockets on the real server."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest
from fastapi import FastAPI

from engram.config.settings import Settings
from engram.runtime import http_server
from engram.runtime.api_process import create_app
from engram.runtime.connections import LEAST_BODY_BYTES, MAX_HEAD_BYTES
from engram.runtime.http_server import Server
from tests.support.processes import eventually, free_port

QUICK_SECONDS = 0.8
PATIENCE_SECONDS = 20.0
POST = b"POST /query HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


def make_server(app: FastAPI, timeout_seconds: float) -> Server:
    """Make a server of 20 connections that gives heads and bodies this time to arrive."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_server, "HEAD_TIMEOUT_SECONDS", timeout_seconds)
        patch.setattr(http_server, "BODY_TIMEOUT_SECONDS", timeout_seconds)
        return Server(app, Settings(_env_file=None, port=free_port(), max_connections=20))


@contextmanager
def start_server(timeout_seconds: float) -> Iterator[Server]:
    """A server that can do nothing but answer, without anything behind it."""
    server = make_server(create_app(None), timeout_seconds)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        eventually(lambda: server.started)
        yield server
    finally:
        server.should_exit = True
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


@pytest.fixture
def server() -> Iterator[Server]:
    with start_server(QUICK_SECONDS) as one:
        yield one


@pytest.fixture
def patient() -> Iterator[Server]:
    with start_server(60.0) as one:
        yield one


def connect(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.config.port), timeout=PATIENCE_SECONDS)


def assert_alive(server: Server) -> None:
    url = f"http://127.0.0.1:{server.config.port}/healthz"
    assert httpx.get(url, timeout=PATIENCE_SECONDS, trust_env=False).status_code == 200


def answer(connection: socket.socket) -> bytes:
    """All that is said until the connection ends."""
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while block := connection.recv(65_536):
            said += block
    return said


def assert_refused(connection: socket.socket, status: int) -> None:
    said = answer(connection)
    assert said.startswith(f"HTTP/1.1 {status} ".encode()), said[:200]
    assert b"application/problem+json" in said


def test_a_header_that_never_ends_is_cut_off(patient: Server) -> None:
    with connect(patient) as connection:
        sent = 0
        try:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Endless: ")
            while sent < 1_000 * MAX_HEAD_BYTES:
                connection.sendall(b"x" * MAX_HEAD_BYTES)
                sent += MAX_HEAD_BYTES
        except (ConnectionResetError, BrokenPipeError):
            pass
        assert sent < 200 * MAX_HEAD_BYTES
        assert_alive(patient)
    with connect(patient) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Long: " + b"x" * (MAX_HEAD_BYTES + 1))
        assert_refused(connection, 431)


def test_a_head_as_long_as_may_be_is_read(patient: Server) -> None:
    with connect(patient) as connection:
        head = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX-Long: "
        connection.sendall(head + b"x" * (MAX_HEAD_BYTES - len(head) - 4) + b"\r\n\r\n")
        assert answer(connection).startswith(b"HTTP/1.1 200")


HALVES = {
    "nothing": (b"", None),
    "part of a head": (b"GET /healthz HTTP/1.1\r\nHost: 127", 408),
    "no body": (POST + b"Content-Length: 100\r\n\r\n", 408),
    "part of a body": (POST + b"Content-Length: 100\r\n\r\n{", 408),
    "a chunk": (POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", 408),
    "not HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
}


def test_incomplete_requests_are_closed(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        halves = {}
        for half, (sent, _) in HALVES.items():
            halves[half] = stack.enter_context(connect(server))
            halves[half].sendall(sent)
        for half, connection in halves.items():
            status = HALVES[half][1]
            if status is None:
                assert answer(connection) == b""
            else:
                assert_refused(connection, status)
    eventually(lambda: not server.server_state.connections)


def send_trickle(connection: socket.socket, first: bytes, again: bytes) -> float:
    """Send a little at a time, until the connection ends; for how long that took."""
    began = time.monotonic()
    connection.sendall(first)
    connection.settimeout(0.05)
    while time.monotonic() - began < PATIENCE_SECONDS:
        try:
            connection.sendall(again)
            if not connection.recv(65_536):
                break
        except TimeoutError:
            continue
        except (ConnectionResetError, BrokenPipeError):
            break
    return time.monotonic() - began


TRICKLES = {
    "head": (b"GET /healthz HTTP/1.1\r\nX: ", b"x"),
    "between requests": (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"\r\n"),
    "body": (POST + b"Content-Length: 1000000\r\n\r\n", b"{"),
}


def test_a_trickle_does_not_keep_a_connection(server: Server) -> None:
    def measure_trickle(trickle: str) -> float:
        with connect(server) as connection:
            return send_trickle(connection, *TRICKLES[trickle])

    with ThreadPoolExecutor(len(TRICKLES)) as pool:
        lasted = dict(zip(TRICKLES, pool.map(measure_trickle, TRICKLES), strict=True))
    assert max(lasted.values()) < PATIENCE_SECONDS, lasted


def test_a_body_may_be_slow_if_it_comes_at_all(server: Server) -> None:
    """It takes several times as long as a pause may, and is read to its end."""
    blocks = 8
    with connect(server) as connection:
        connection.sendall(POST + f"Content-Length: {blocks * LEAST_BODY_BYTES}\r\n\r\n".encode())
        for _ in range(blocks):
            time.sleep(QUICK_SECONDS / 3)
            connection.sendall(b"x" * LEAST_BODY_BYTES)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 400")


def test_half_sent_posts_make_room_for_who_comes(patient: Server) -> None:
    limit = patient.config.http.keywords["limits"].connections  # type: ignore[union-attr]
    held = [connect(patient) for _ in range(3 * limit)]
    for connection in held:
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            connection.sendall(POST + b"Content-Length: 100\r\n\r\n{")
    assert_alive(patient)
    assert len(patient.server_state.connections) <= limit
    for connection in held:
        connection.close()


def test_requests_in_hand_are_not_dropped_for_others() -> None:
    freed = threading.Event()
    app = create_app(None)
    app.add_api_route("/wait", lambda: freed.wait(PATIENCE_SECONDS), methods=["GET"])
    settings = Settings(_env_file=None, port=free_port(), max_connections=10)
    server = Server(app, settings)
    thread = threading.Thread(target=server.run)
    thread.start()
    eventually(lambda: server.started)
    held = [connect(server) for _ in range(10)]
    try:
        for connection in held:
            connection.sendall(b"GET /wait HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        eventually(
            lambda: all(one.is_busy for one in list(server.server_state.connections)) and server.server_state.tasks
        )  # type: ignore[union-attr]
        with connect(server) as one_more:
            assert_refused(one_more, 503)
        freed.set()
        assert all(answer(connection).startswith(b"HTTP/1.1 200") for connection in held)
    finally:
        freed.set()
        for connection in held:
            connection.close()
        server.should_exit = True
        thread.join(PATIENCE_SECONDS)


def test_untaken_answer_closes_its_connection() -> None:
    app = create_app(None)
    app.add_api_route("/much", lambda: "x" * 50_000_000, methods=["GET"])
    server = make_server(app, QUICK_SECONDS)
    thread = threading.Thread(target=server.run)
    thread.start()
    eventually(lambda: server.started)
    try:
        with connect(server) as connection:
            connection.sendall(b"GET /much HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert connection.recv(1)
            eventually(lambda: not server.server_state.connections)
    finally:
        server.should_exit = True
        thread.join(PATIENCE_SECONDS)
