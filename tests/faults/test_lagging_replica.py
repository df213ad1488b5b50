"""A replica that lags while the service works: what was acknowledged is read, and nothing is lost or doubled.

This is the short form; ``python -m tests.faults --only replica`` repeats it as often as you like.
``test_replica.py`` has each case by itself.
"""

import random
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.wings.local.servers import EmbeddedPostgres, EmbeddedRedis
from tests.faults.installation import Installation, Tally
from tests.faults.replicas import Replicas
from tests.support.databases import application_on


@pytest.fixture(scope="module")
def places(postgres: EmbeddedPostgres, own_redis: EmbeddedRedis) -> Servers:
    """A server that a replica may follow."""
    return Servers(postgres.url, own_redis.url)


@pytest.mark.campaign
def test_what_was_acknowledged_is_read_while_the_replica_lags(
    application: Application,
    postgres: EmbeddedPostgres,
    places: Servers,
    env: Mapping[str, str],
    settings: Settings,
    tmp_path: Path,
) -> None:
    with application_on(places, settings, application) as services, ExitStack() as stack:
        tally = Tally("replica", runs=1)
        Replicas(Installation(services, env, tmp_path), postgres, random.Random(1), stack).lag(tally)
    assert tally.hits > 0
    assert tally.findings == []
