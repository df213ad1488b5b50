"""A wing is off only while it is empty: no rows in its tables, and no settings of it in collections."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from engram.composition.container import Application, Servers
from engram.composition.wings import list_installed_wings
from engram.config.settings import Settings
from engram.context.errors import ConfigurationError, ConflictError, NotFoundError
from engram.services.maintenance.wing_clearing import Cleared
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.parts import facts_of
from engram.wings.facts.services.fact_service import StatedFact
from engram.wings.frontends.parts import FrontendServices
from engram.wings.frontends.services.pull_ledger import PulledScore
from engram.wings.history.parts import history_of
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.session_service import NewSession
from engram.wings.tuning.parts import tuning_of
from engram.wings.upkeep.parts import upkeep_of
from tests.support.command import UNREACHABLE_URL, Cli
from tests.support.databases import application_on, new_database, open_migrated

HELD = {
    "experiments": "settings of collections (docs, plain)",
    "facts": "rows (fact_entity, fact, fact_event, fact_statement, fact_source, fact_audit)",
    "frontends": "rows (pulled_score)",
    "history": "open jobs (replay)",
    "sessions": "rows (session) and open jobs (session)",
    "tuning": "rows (tuning_state)",
}
EMPTY = dict.fromkeys((wing.name for wing in list_installed_wings()), "")
REFUSALS = {
    wing: f"The wing {wing!r} is off and holds {held}: switch it on by ENGRAM_WINGS, or remove them by "
    f"`engram wing clear {wing}`."
    for wing, held in HELD.items()
}
ARMS = {"arms": [{"name": "everybody", "percent": 100, "memory": "off"}]}
Open = Callable[[str], Application]
OneByOne = pytest.mark.parametrize("wing", HELD)


def list_others(wing: str) -> str:
    """List the wings that do without this one."""
    return ",".join(one.name for one in list_installed_wings() if wing not in (one.name, *one.needs))


@pytest.fixture(scope="module")
def filled(addresses: Servers, settings: Settings, application: Application) -> Iterator[Servers]:
    """A database where each wing holds something in collection docs, and one an exploration in another."""
    with open_migrated(addresses) as servers:
        with application_on(servers, settings.model_copy(update={"wings": "all"}), application) as services:
            fill(services)
        yield servers


@pytest.fixture
def place(filled: Servers) -> Iterator[Servers]:
    """A copy of that database."""
    with new_database(filled.database_url, copied=True) as url:
        yield Servers(url, filled.redis_url)


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
    return {"DATABASE_URL": place.database_url, "REDIS_URL": place.redis_url}


def fill(services: Application) -> None:
    for name in ("docs", "plain", "empty"):
        services.corpus.ingest.receive(services.auth.access.prepare_opening(name)).finish()
    docs = services.auth.access.scope("docs")
    score = PulledScore("s1", "dify", "up", "digest", 1, datetime(2026, 5, 1, tzinfo=UTC), [uuid4()])
    services.wing(FrontendServices).pulls.put(docs, "dify@local", [score])
    services.corpus.collection_settings.configure(docs, {"experiment": ARMS})
    stated = StatedFact(Triple("Ada", "born in", "Lund", 0, "entity", None, None, 1.0), "Ada was born in Lund.")
    facts_of(services).facts.state(docs, [stated], source="a letter")
    sessions_of(services).sessions.start(docs, NewSession(question="Where was Ada born?"))
    tuning_of(services).tuning.change(docs, is_on=False)
    history_of(services).past.request(docs, datetime(2026, 5, 1, tzinfo=UTC))
    services.corpus.collection_settings.configure(
        services.auth.access.scope("plain"), {"exploration": {"share": 0.5}}
    )


def test_wings_that_hold_nothing_may_be_off(own: Servers, settings: Settings, application: Application) -> None:
    with application_on(own, settings.model_copy(update={"wings": "none"}), application) as services:
        services.startup.warm_up()
        listed = services.maintenance.wing_clearing.list_wings()
    assert {wing.name: wing.held for wing in listed} == EMPTY
    assert not any(wing.is_on for wing in listed)


def test_wings_that_hold_something_may_be_on(open_with: Open) -> None:
    open_with(",".join(HELD)).startup.warm_up()


@OneByOne
def test_nothing_starts_while_a_wing_that_holds_something_is_off(open_with: Open, wing: str) -> None:
    off = open_with(list_others(wing))
    with pytest.raises(ConfigurationError) as refusal:
        off.startup.warm_up()
    assert refusal.value.detail == REFUSALS[wing]
    assert [(one.verdict, one.found) for one in upkeep_of(off).doctor.examine() if one.thing == "wings"] == [
        ("wrong", REFUSALS[wing])
    ]


@OneByOne
def test_a_cleared_wing_may_be_off(open_with: Open, wing: str) -> None:
    services = open_with(list_others(wing))
    found = services.maintenance.wing_clearing.find(wing)
    cleared = services.maintenance.wing_clearing.clear(wing)
    assert cleared == Cleared(found.tables, 2 if wing == "experiments" else 0, found.jobs)
    services.startup.warm_up()
    assert services.maintenance.wing_clearing.clear(wing) == Cleared()
    left = {one.name: one.held for one in services.maintenance.wing_clearing.list_wings()}
    assert left == EMPTY | HELD | {wing: ""}
    with services.database.read() as reader:
        assert reader.scalar("SELECT count(*) FROM collection") == 3


def test_settings_that_were_ended_or_deleted_do_not_count(open_with: Open) -> None:
    services = open_with("all")
    services.corpus.collection_settings.configure(services.auth.access.scope("docs"), {"experiment": None})
    services.corpus.ingest.delete_collection(services.auth.access.scope("plain"))
    assert {wing.name: wing.held for wing in services.maintenance.wing_clearing.list_wings()}["experiments"] == ""


def test_a_few_of_many_collections_are_named(open_with: Open) -> None:
    services = open_with("all")
    for number in range(4):
        services.corpus.ingest.receive(services.auth.access.prepare_opening(f"c{number}")).finish()
        services.corpus.collection_settings.configure(
            services.auth.access.scope(f"c{number}"), {"experiment": ARMS}
        )
    held = {wing.name: wing.held for wing in services.maintenance.wing_clearing.list_wings()}
    assert held["experiments"] == "settings of collections (c0, c1, c2, c3, docs and others)"
    assert open_with("none").maintenance.wing_clearing.clear("experiments").collections == 6


def test_only_a_wing_that_is_off_is_cleared(open_with: Open) -> None:
    services = open_with("all")
    for wing in HELD:
        with pytest.raises(ConflictError, match="is on"):
            services.maintenance.wing_clearing.clear(wing)
    with pytest.raises(NotFoundError, match="installed are experiments, facts, frontends"):
        services.maintenance.wing_clearing.clear("facade")
    assert {wing.name: wing.held for wing in services.maintenance.wing_clearing.list_wings()} == EMPTY | HELD


def test_the_commands_name_and_clear_what_keeps_processes_from_starting(
    shell: Cli, env: dict[str, str], open_with: Open
) -> None:
    for wing in ("facts", "history", "sessions", "tuning"):
        shell("wing", "clear", wing, "--yes", **env, ENGRAM_WINGS="none")
    env |= {"ENGRAM_WINGS": "importing"}
    for process in ("serve", "worker"):
        assert shell.fails(process, **env) == f"engram: {REFUSALS['experiments']}\n"
    listed = shell("wing", "list", **env).stdout.splitlines()
    assert [re.split(r"\s{2,}", line.rstrip()) for line in listed] == [
        ["wing", "holds"],
        ["experiments", "off", HELD["experiments"]],
        ["facts", "off", "nothing"],
        ["frontends", "off", HELD["frontends"]],
        ["history", "off", "nothing"],
        ["importing", "on", "nothing"],
        ["local", "off", "nothing"],
        ["published", "off", "nothing"],
        ["sessions", "off", "nothing"],
        ["tuning", "off", "nothing"],
        ["upkeep", "off", "nothing"],
        ["why", "off", "nothing"],
        ["agent", "off", "nothing"],
    ]
    unconfirmed = shell("wing", "clear", "frontends", **env)  # nobody answers
    assert unconfirmed.returncode == 1
    assert "Remove rows (pulled_score), of every collection and tenant?" in unconfirmed.stderr
    cleared = shell("wing", "clear", "experiments", "--yes", "--json", **env)
    assert json.loads(cleared.stdout) == {"wing": "experiments", "tables": [], "collections": 2, "jobs": []}
    assert shell.fails("serve", **env) == f"engram: {REFUSALS['frontends']}\n"
    assert shell("wing", "clear", "frontends", "-y", **env).stdout == "frontends: removed rows (pulled_score)\n"
    assert shell("wing", "clear", "frontends", **env).stdout == "frontends: holds nothing\n"
    with open_with("importing").database.read() as reader:
        assert [tuple(row) for row in reader.rows("SELECT action, target FROM audit_log ORDER BY id")] == [
            *(
                ("clear wing", wing)
                for wing in ("facts", "history", "sessions", "tuning", "experiments", "frontends")
            ),
        ]
