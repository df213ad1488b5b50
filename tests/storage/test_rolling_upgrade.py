"""Two versions of the service on one database: a revision that only adds is made while the earlier one serves."""

import threading
from pathlib import Path

import pytest

import engram.migrations
from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context.errors import ConfigurationError
from engram.services.question.query import Query
from engram.storage.database import Database
from engram.storage.maintenance import schema_standing
from engram.storage.schema_revision import migrate
from tests.conftest import CURIE
from tests.support import releases, state, undo
from tests.support.databases import application_on, open_migrated
from tests.support.threads import ThreadPoolExecutor

QUESTION = "Where was Marie Curie born?"
REVISION = """
from alembic import op

revision, down_revision, branch_labels, depends_on = "{name}", "{before}", None, None
oldest_code = "{oldest}"


def upgrade() -> None:
    for statement in {statements}:
        op.execute(statement)


def downgrade() -> None:
    pass
"""
EXPAND = ("ALTER TABLE question ADD COLUMN note text", "CREATE TABLE note (id bigint PRIMARY KEY)")
CONTRACT = ("ALTER TABLE question DROP COLUMN note",)


def test_the_earlier_version_serves_and_starts_until_the_schema_contracts(
    addresses: Servers,
    settings: Settings,
    application: Application,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with open_migrated(addresses) as own, application_on(own, settings, application) as services:
        state.stage_passages(services, "docs", *CURIE)
        services.jobs.runner.run_ready()
        sentences, over = state.list_sentence_ids(services, "docs"), threading.Event()

        def serve() -> int:
            scope, rounds = services.auth.access.scope("docs"), 0
            while rounds < 3 or not over.is_set():
                answer = services.answers.question.serve(Query(text=QUESTION, scope=scope))
                state.judge(services, "docs", answer.query_id, sentences[:1], wait=True)
                rounds += 1
            return rounds

        revisions = [
            REVISION.format(name="expanded", before="2026.12", oldest="2026.12", statements=EXPAND),
            REVISION.format(name="contracted", before="expanded", oldest="expanded", statements=CONTRACT),
        ]
        assert stand(services.database) == "current"  # by the revisions that this version knows
        with monkeypatch.context() as later, ThreadPoolExecutor(2) as threads:
            serving = [threads.submit(serve) for _ in range(2)]
            later.setattr(engram.migrations, "__file__", releases.add_revisions(tmp_path, *revisions))
            try:
                migrate(own.database_url, "expanded")
            finally:
                over.set()
            assert sum(each.result() for each in serving) == len(state.rows(services, "docs", "feedback_event"))
            services.startup.check_encoders()
            assert stand(services.database) == "newer"
            undo.assert_verified(services, "docs")

            migrate(own.database_url)
            assert stand(services.database) == "unknown"
            with pytest.raises(ConfigurationError, match="of a later version, on which this one does not work"):
                services.startup.check_encoders()


def test_a_version_does_not_start_before_its_migration(
    addresses: Servers, application: Application, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_standing, "_revisions", lambda: ("expanded", frozenset({"2026.12", "expanded"})))
    refused = pytest.raises(ConfigurationError, match="`engram migrate` brings it there")
    with application_on(addresses, settings, application) as services, refused:
        services.startup.check_encoders()


def stand(database: Database) -> str:
    with database.read() as reader:
        return schema_standing.load_standing(reader)
