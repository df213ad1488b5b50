"""Upgrades: databases of every revision, with rows that the code of their time wrote, brought to the present."""

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from alembic.script import ScriptDirectory

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.core.text.identifiers import read_moment
from engram.services.question.query import Query
from engram.storage.database import Database
from engram.storage.question import episode_partitions
from engram.storage.schema_revision import configuration, migrate
from engram.wings.upkeep.storage import schema_drift
from tests.support import catalog, earlier, state, undo
from tests.support.databases import application_on, new_database

REVISIONS = [
    script.revision for script in ScriptDirectory.from_config(configuration("")).walk_revisions()
]  # the latest first


@pytest.fixture(params=REVISIONS)
def url(request: pytest.FixtureRequest, addresses: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A database of one revision."""
    monkeypatch.setenv("ENGRAM_EMBEDDING_DIMENSION", str(earlier.DIMENSION))
    text = (earlier.FOLDER / f"{request.param}.sql").read_text(encoding="utf-8")
    with new_database(addresses.database_url) as found:
        migrate(found, request.param)
        database = Database(found, pool_size=1)
        try:
            with database.write() as writer:
                for week in sorted(
                    {episode_partitions.compute_monday(read_moment(query)) for query in _queries(text)}
                ):
                    episode_partitions.make(writer, week)
        finally:
            database.close()
        earlier.load(found, text)
        yield found


def _queries(text: str) -> list[UUID]:
    lines = (line for line in text.splitlines() if line.startswith("INSERT INTO public.episode "))
    return [UUID(line.split("VALUES (")[1].split("'")[1]) for line in lines]


def test_rows_of_every_revision_are_at_hand() -> None:
    """A new revision comes with rows that its code wrote: see ``tests.support.earlier``."""
    assert {path.stem for path in Path(earlier.FOLDER).glob("*.sql")} == set(REVISIONS)


def test_old_schema_is_upgraded_and_works(
    url: str, addresses: Servers, settings: Settings, application: Application
) -> None:
    answers = earlier.FOLDER / f"{_revision(url)}.json"
    migrate(url)
    assert catalog.describe_database(url) == catalog.describe_tables(url)
    own = settings.model_copy(update={"embedding_dimension": earlier.DIMENSION})
    cut = earlier.Cut(application.models.embedder)
    with application_on(Servers(url, addresses.redis_url), own, application, cut) as services:
        services.startup.check_encoders()
        name = earlier.COLLECTION
        undo.assert_verified(services, name)
        assert earlier.ask(services) == json.loads(answers.read_text(encoding="utf-8"))
        scope = services.auth.access.scope(name)
        answer = services.answers.question.serve(Query(text=earlier.QUESTION, scope=scope))
        assert answer.passages[0].passage_id == "curie"
        (waiting,) = [
            event for event, status in state.event_statuses(services, name).items() if status == "pending"
        ]
        assert services.learning.learner.apply(scope.collection.id, [waiting]) == 1  # accepted before the upgrade
        undo.assert_verified(services, name)
        before = services.answers.episodes.read(scope, state.rows(services, name, "judged_query")[0]["id"])
        assert before.judged >= 1
        undo.apply(services, name, undo.stream(services, name, 3, seed=8))
        undo.assert_verified(services, name)
        state.stage_passages(services, name, {"id": "new", "title": "Radium", "text": "Radium glows."}, key="after")
        assert services.jobs.runner.run_ready() == 1
        assert {tenant.name for tenant in services.auth.access_keys.tenants()} == {"acme", "local"}
        assert schema_drift.list_missing(services.database) == []


def test_downgrade_and_upgrade_lose_no_rows(url: str) -> None:
    revision = _revision(url)
    before = _rows(url)
    migrate(url)
    migrate(url, revision)
    assert _revision(url) == revision
    assert _rows(url) == before
    migrate(url)
    assert _revision(url) == REVISIONS[0]


def _revision(url: str) -> str:
    return str(_read(url, "SELECT version_num FROM alembic_version")[0])


def _rows(url: str) -> list[str]:
    tables = _read(
        url, "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    )
    of_rows = sorted(table for table in tables if table != "alembic_version")
    return [f"{table} {row}" for table in of_rows for row in sorted(_read(url, f"SELECT t::text FROM {table} t"))]


def _read(url: str, statement: str) -> list[str]:
    database = Database(url, pool_size=1)
    try:
        with database.read() as reader:
            return [str(row[0]) for row in reader.rows(statement)]
    finally:
        database.close()
