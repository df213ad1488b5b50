"""Wake-ups: sent where they can be, never in the way where they cannot."""

import socket

import pytest

from engram.composition.container import Servers
from engram.storage.wake_stream import WakeStream


def test_missing_redis_returns_false() -> None:
    stream = WakeStream("redis://127.0.0.1:1/0")

    assert stream.wake([(1, 2)]) is False
    assert stream.ping() is False


def test_silent_redis_returns_false(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engram.storage.wake_stream.SOCKET_TIMEOUT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        stream = WakeStream(f"redis://127.0.0.1:{silent.getsockname()[1]}/0")

        assert stream.wake([(1, 2)]) is False
        assert stream.ping() is False
        stream.close()


def test_working_redis_returns_true(addresses: Servers) -> None:
    stream = WakeStream(addresses.redis_url)

    assert stream.ping() is True
    assert stream.wake([(2**62, 1)]) is True
    stream.close()
