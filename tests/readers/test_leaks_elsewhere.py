"""No leak from a streaming replica, nor from a database that was restored from a backup."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from pydantic import SecretStr

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.runtime.api_process import create_app
from engram.storage import replica
from engram.storage.schema_revision import migrate
from engram.wings.local.servers import EmbeddedPostgres
from engram.wings.upkeep.parts import upkeep_of
from tests.conftest import Heavy
from tests.readers.leaks import REQUESTS, SEED, Caller, World, explore, tokens_of
from tests.support import standby
from tests.support.constants import READ_LAG, set_constants
from tests.support.databases import new_database
from tests.support.processes import eventually
from tests.support.strict_client import TestClient

pytestmark = pytest.mark.wing("upkeep")
ASKED = REQUESTS // 3
"""Requests to each; which of them could leak, `test_leaks.py` finds out."""


@pytest.fixture(scope="module")
def primary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    with standby.open_primary(tmp_path_factory.mktemp("primary")) as server:
        yield server


@pytest.fixture(scope="module")
def second(primary: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    with standby.open_replica(primary, tmp_path_factory.mktemp("standby")) as server:
        yield server


@pytest.fixture(scope="module")
def own(primary: EmbeddedPostgres, addresses: Servers) -> Servers:
    return Servers(primary.url, addresses.redis_url)


@pytest.fixture(scope="module")
def keyed(settings: Settings, own: Servers, second: EmbeddedPostgres, heavy: Heavy) -> Iterator[Application]:
    """An application that reads on the replica."""
    told = {"access": "keys", "read_database_url": SecretStr(second.url)}
    with pytest.MonkeyPatch.context() as patch:
        set_constants(patch, {READ_LAG: 300.0})
        services = Application(settings.model_copy(update=told), own, consumer="replica-readers")
    services.models.embedder, services.models.language = heavy
    assert services.database.replica is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replica, "LOOK_SECONDS", 0.05)
        services.database.replica.start()
        eventually(lambda: services.database.replica.get_last_position().lag_seconds is not None)
        yield services
        services.close()


def test_a_replica_tells_nothing_of_a_hidden_passage(
    world: World,
    copied: World,
    callers: Sequence[Caller],
    keyed: Application,
    second: EmbeddedPostgres,
    admin: TestClient,
) -> None:
    before = count_reads(second)
    assert list(explore(random.Random(SEED), [world, copied], callers, admin, ASKED)) == []
    # A server counts what a connection did up to ten seconds later.
    eventually(lambda: count_reads(second) > before + ASKED // 4, "the reads on the replica")


def count_reads(server: EmbeddedPostgres) -> int:
    """Transactions that the server ended."""
    with standby.connect_to(server) as connection:
        row = connection.execute(
            "SELECT pg_stat_get_db_xact_commit(oid) FROM pg_database WHERE datname = current_database()"
        )
        return int(row.fetchall()[0][0])  # type: ignore[call-overload]


@pytest.fixture(scope="module")
def restored(
    world: World,
    copied: World,
    keyed: Application,
    own: Servers,
    settings: Settings,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Application]:
    """An application on what a backup holds, and nothing before."""
    folder = tmp_path_factory.mktemp("backup") / "one"
    upkeep_of(keyed).backup.backup(folder)
    with new_database(own.database_url) as url:
        migrate(url)
        servers = Servers(url, own.redis_url)
        services = Application(settings.model_copy(update={"access": "keys"}), servers, consumer="restored")
        services.models.embedder, services.models.language = keyed.models.embedder, keyed.models.language
        upkeep_of(services).backup.restore(folder)
        yield services
        services.close()


def test_a_restored_database_tells_nothing_of_a_hidden_passage(
    world: World, copied: World, callers: Sequence[Caller], restored: Application, admin: TestClient
) -> None:
    served = create_app(restored)

    def move(client: TestClient) -> TestClient:
        return TestClient(served, raise_server_exceptions=False, headers=client.headers)

    moved = [replace(one, client=move(one.client)) for one in callers if "authorization" in one.client.headers]
    worlds = [replace(one, readers=dict(one.readers), ids={}, asked=0) for one in (world, copied)]
    assert list(explore(random.Random(SEED + 1), worlds, moved, move(admin), ASKED)) == []
    hidden = next(number for number in worlds[0].readers if number in worlds[0].hidden(moved[0]))
    where = {"params": {"collection": world.name}}
    path = f"/passages/{tokens_of(hidden)['id']}"
    assert move(admin).get(path, **where).status_code == 200
    assert moved[0].client.get(path, **where).status_code == 404
