"""Connections of a process: a start that fails leaves none open."""

import pytest

from engram.composition.servers import Connections, Servers
from engram.config.settings import Settings
from engram.context.errors import ConfigurationError
from engram.storage.database import Database


def test_pools_are_closed_if_the_address_of_redis_is_wrong(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Database] = []

    def close(database: Database) -> None:
        closed.append(database)

    monkeypatch.setattr(Database, "close", close)

    with pytest.raises(ConfigurationError, match="REDIS_URL"):
        Connections(settings, Servers("postgresql://127.0.0.1:1/engram", "localhost:6379"), "")

    assert len(closed) == 1
