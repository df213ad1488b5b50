"""A wing is off only while its tables are empty."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context.errors import ConfigurationError, ConflictError, NotFoundError
from engram.wings.frontends.parts import FrontendServices
from engram.wings.frontends.services.pull_ledger import PulledScore
from tests.support.command import UNREACHABLE_URL, Cli
from tests.support.databases import application_on, open_migrated

REFUSAL = (
    "The wing 'frontends' is off and holds rows (pulled_score): switch it on by ENGRAM_WINGS, or remove them by "
    "`engram wing clear frontends`."
)
Open = Callable[[str], Application]


@pytest.fixture
def place(addresses: Servers) -> Iterator[Servers]:
    """A database of its own."""
    with open_migrated(addresses) as servers:
        yield servers


@pytest.fixture
def open_with(place: Servers, settings: Settings, application: Application, request: pytest.FixtureRequest) -> Open:
    """Open an application on that database with given wings."""

    def open_application(wings: str) -> Application:
        opened = application_on(place, settings.model_copy(update={"wings": wings}), application)
        request.addfinalizer(lambda: opened.__exit__(None, None, None))
        return opened.__enter__()

    return open_application


@pytest.fixture
def shell(place: Servers, tmp_path: Path, settings: Settings) -> Cli:
    return Cli(tmp_path, UNREACHABLE_URL, settings.data_dir)


@pytest.fixture
def env(place: Servers) -> dict[str, str]:
    return {"DATABASE_URL": place.database_url, "REDIS_URL": place.redis_url, "ENGRAM_WINGS": "importing"}


@pytest.fixture
def filled(open_with: Open) -> None:
    """Store a pulled score in a new collection."""
    services = open_with("all")
    services.ingest.receive(services.access.prepare_opening("docs")).finish()
    score = PulledScore("s1", "dify", "up", "digest", 1, datetime(2026, 5, 1, tzinfo=UTC), [uuid4()])
    services.wing(FrontendServices).pulls.put(services.access.scope("docs"), "dify@local", [score])


def test_a_wing_without_rows_may_be_off(open_with: Open) -> None:
    services = open_with("none")
    services.startup.warm_up()
    assert [(wing.name, wing.is_on, wing.filled) for wing in services.wing_clearing.list_wings()] == [
        ("experiments", False, []),
        ("frontends", False, []),
        ("importing", False, []),
    ]


@pytest.mark.usefixtures("filled")
def test_a_wing_with_rows_is_on_or_nothing_starts(open_with: Open) -> None:
    for wings in ("all", "frontends"):
        open_with(wings).startup.warm_up()
    for wings in ("none", "importing"):
        off = open_with(wings)
        with pytest.raises(ConfigurationError) as refusal:
            off.startup.warm_up()
        assert refusal.value.detail == REFUSAL
    assert [(one.verdict, one.found) for one in off.doctor.examine() if one.thing == "wings"] == [
        ("wrong", REFUSAL)
    ]


@pytest.mark.usefixtures("filled")
def test_a_cleared_wing_may_be_off(open_with: Open) -> None:
    services = open_with("importing")
    assert services.wing_clearing.clear("frontends").filled == ["pulled_score"]
    services.startup.warm_up()
    assert services.wing_clearing.clear("frontends").filled == []
    with services.database.read() as reader:
        assert reader.scalar("SELECT count(*) FROM collection") == 1


@pytest.mark.usefixtures("filled")
def test_only_a_wing_that_is_off_is_cleared(open_with: Open) -> None:
    services = open_with("all")
    with pytest.raises(ConflictError, match="is on"):
        services.wing_clearing.clear("frontends")
    with pytest.raises(NotFoundError, match="installed are experiments, frontends, importing"):
        services.wing_clearing.clear("facade")
    assert [wing.filled for wing in services.wing_clearing.list_wings()] == [[], ["pulled_score"], []]


@pytest.mark.usefixtures("filled")
def test_the_commands_name_and_clear_what_keeps_processes_from_starting(
    shell: Cli, env: dict[str, str], open_with: Open
) -> None:
    for process in ("serve", "worker"):
        assert shell.fails(process, **env) == f"engram: {REFUSAL}\n"
    listed = shell("wing", "list", **env).stdout.splitlines()
    assert [line.split() for line in listed] == [
        ["wing", "tables", "with", "rows"],
        ["experiments", "off", "none"],
        ["frontends", "off", "pulled_score"],
        ["importing", "on", "none"],
    ]
    unconfirmed = shell("wing", "clear", "frontends", **env)  # nobody answers
    assert unconfirmed.returncode == 1
    assert "of every collection and tenant?" in unconfirmed.stderr
    cleared = shell("wing", "clear", "frontends", "--yes", "--json", **env)
    assert json.loads(cleared.stdout) == {"wing": "frontends", "cleared": ["pulled_score"]}
    assert shell("wing", "clear", "frontends", **env).stdout == "frontends: no rows\n"
    with open_with("importing").database.read() as reader:
        assert [tuple(row) for row in reader.rows("SELECT action, target FROM audit_log")] == [
            ("clear wing", "frontends")
        ]
