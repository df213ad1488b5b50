"""Tenants kept apart by Postgres itself, with the application's own scope removed."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import Context
from typing import Any

import pytest
from sqlalchemy.exc import DataError, ProgrammingError

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context import tenancy
from engram.context.errors import ConfigurationError
from engram.context.tenancy import UnsetTenancyError
from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from engram.storage import row_security
from engram.storage.corpus import collections
from engram.storage.database import Database, Reader
from engram.storage.schema_revision import migrate
from engram.storage.tables import metadata
from tests.support.strict_client import TestClient

SHARED_TABLES = {"tenant", "access_key", "quota_usage", "audit_log", "encoder"}
"""Tables that no tenant's connection sees at all."""


@pytest.fixture
def database(addresses: Servers) -> Iterator[Database]:
    database = Database(addresses.database_url, pool_size=2, row_security=True)
    yield database
    database.close()


@pytest.fixture
def secured(application: Application, addresses: Servers, settings: Settings) -> Iterator[Application]:
    """The application with row security, needing keys."""
    built = Application(settings.model_copy(update={"row_security": True, "access": "keys"}), addresses)
    built.models.embedder, built.models.language = application.models.embedder, application.models.language
    yield built
    built.close()


def open_keyed_client(secured: Application, tenant: str) -> TestClient:
    made = secured.auth.access_keys.make(
        LOCAL, AccessKeyRequest(name="own", scopes={"*": ["admin"]}, trusted=True), tenant
    )
    headers = {"authorization": f"Bearer {made.key}"}
    return TestClient(create_app(secured), raise_server_exceptions=False, headers=headers)


def visible(database: Database, tenant: str | None) -> dict[str, int]:
    with tenancy.allow_all_tenants() if tenant is None else tenancy.restrict_to(tenant), database.read() as reader:
        return {
            table: reader.scalar(f"SELECT count(*) FROM {table}")
            for table in metadata.tables
            if table not in SHARED_TABLES
        }


def test_every_table_of_collections_is_under_it(database: Database) -> None:
    with database.read() as reader:
        bare = {
            row[0]
            for row in reader.rows(
                """
                SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
                  AND NOT relispartition AND NOT relrowsecurity
                """
            )
        }
    assert bare == {*SHARED_TABLES, "alembic_version"}


def test_no_statement_sees_or_changes_rows_of_others(
    application: Application, database: Database, curie: str
) -> None:
    target = application.auth.access.scope(curie).collection.id
    assert visible(database, None)["passage"] >= 5
    assert visible(database, "local")["passage"] >= 5
    assert set(visible(database, "stranger").values()) == {0}
    with tenancy.restrict_to("stranger"):
        with database.write() as writer:
            assert writer.execute("UPDATE passage SET title = 'x'") == 0
            assert writer.execute("DELETE FROM collection") == 0
        insert = "INSERT INTO lexical_posting VALUES (%(c)s, 1, 1, 1, 1)"
        with pytest.raises(ProgrammingError, match="row-level security"), database.write_once() as writer:
            writer.execute(insert, {"c": target})
        for table in SHARED_TABLES:
            with pytest.raises(ConfigurationError, match="permission denied"), database.read() as reader:
                reader.rows(f"SELECT * FROM {table}")
    assert application.auth.access.scope(curie).collection.passage_count == 5


def test_without_its_role_nothing_starts(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    row_security.check(database)
    monkeypatch.setattr("engram.storage.row_security.TENANT_ROLE", "nobody_at_all")
    with pytest.raises(ConfigurationError, match="needs the role nobody_at_all"):
        row_security.check(database)


@pytest.mark.parametrize(
    "statement",
    [
        "DROP POLICY tenant ON passage",
        "ALTER TABLE passage DISABLE ROW LEVEL SECURITY",
        "CREATE POLICY everyone ON passage USING (true)",
    ],
)
def test_no_process_starts_with_a_table_that_shows_all_tenants(empty_database: str, statement: str) -> None:
    migrate(empty_database)
    database = Database(empty_database, pool_size=1, row_security=True)
    try:
        row_security.check(database)
        with database.write() as writer:
            writer.execute(statement)
        with pytest.raises(ConfigurationError, match=r"policy tenant alone on: passage\.$"):
            row_security.check(database)
    finally:
        database.close()


def test_a_role_that_no_policy_binds_is_refused(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with database.read() as reader:
        monkeypatch.setattr("engram.storage.row_security.TENANT_ROLE", reader.scalar("SELECT current_user"))
    with pytest.raises(ConfigurationError, match="bound by policies"):
        row_security.check(database)


def test_connections_of_a_pool_change_their_tenant(database: Database, curie: str) -> None:
    count = "SELECT count(*) FROM collection WHERE name = %(name)s"
    for tenant, found in [("local", 1), ("stranger", 0), (None, 1), ("stranger", 0), ("local", 1)]:
        with tenancy.allow_all_tenants() if tenant is None else tenancy.restrict_to(tenant):
            with database.read() as reader:
                assert reader.scalar(count, {"name": curie}) == found
            with pytest.raises(DataError), database.write() as writer:
                writer.scalar("SELECT 1 / 0")  # what is rolled back takes no tenant with it
            with database.write() as writer:
                assert writer.scalar(count, {"name": curie}) == found
            with database.snapshot() as reader:
                assert reader.scalar(count, {"name": curie}) == found


def test_all_that_requests_do_goes_on_under_it(secured: Application, curie: str) -> None:
    client = open_keyed_client(secured, "local")
    asked = client.post("/query", json={"query": "Where was Marie Curie born?", "collection": curie}).json()
    assert asked["passages"]
    sentence = asked["passages"][0]["sentences"][0]["sentence_id"]
    judged = {"query_id": asked["query_id"], "collection": curie, "wait": True}
    given = client.post("/feedback", json=judged | {"supporting": [sentence]}, headers={"idempotency-key": "rls"})
    assert (given.status_code, given.json()["status"]) == (200, "applied"), given.text
    where: dict[str, Any] = {"params": {"collection": curie}}
    passages = {"passages": [{"id": "thames", "text": "The Thames flows through London."}]}
    assert client.post("/passages", json=passages, **where).status_code == 202
    assert secured.jobs.runner.run_ready() >= 1
    assert client.get("/passages/thames", **where).status_code == 200
    assert client.get(f"/collections/{curie}/judges").json()["judges"][0]["judge"] == "own"
    assert client.delete("/passages/thames", **where).status_code == 204
    assert client.delete(f"/feedback/{given.json()['feedback_id']}", **where).json()["status"] == "revoked"
    assert client.delete(f"/collections/{curie}").status_code == 204


def test_row_security_hides_rows_without_the_application_check(
    secured: Application, curie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = open_keyed_client(secured, f"tenant-{curie}")
    find = collections.find
    monkeypatch.setattr(collections, "find", lambda reader, name, _tenant: find(reader, name, "local"))
    for method, path in [("GET", f"/collections/{curie}"), ("DELETE", f"/collections/{curie}")]:
        assert stranger.request(method, path).status_code == 404
    body = {"query": "Where was Marie Curie born?", "collection": curie}
    assert stranger.post("/query", json=body).status_code == 404

    without = Application(secured.settings.model_copy(update={"row_security": False}), Servers(*_urls(secured)))
    try:
        assert (
            TestClient(create_app(without), headers=dict(stranger.headers)).get(f"/collections/{curie}").is_success
        )
    finally:
        without.close()


def _urls(application: Application) -> tuple[str, str]:
    return application.addresses.database_url, "redis://127.0.0.1:1/0"


@pytest.mark.parametrize("row_security", [True, False])
@pytest.mark.parametrize(
    "lend",
    [
        Database.read,
        Database.snapshot,
        Database.write,
        Database.write_once,
        Database.write_long,
        Database.administer,
    ],
)
def test_where_no_tenancy_is_set_no_statement_runs(
    addresses: Servers, lend: Callable[[Database], AbstractContextManager[Reader]], row_security: bool
) -> None:
    database = Database(addresses.database_url, pool_size=2, row_security=row_security)

    def count() -> int:
        with lend(database) as reader:
            return int(reader.scalar("SELECT count(*) FROM collection"))

    with pytest.raises(UnsetTenancyError):
        Context().run(count)
    with tenancy.allow_all_tenants():
        assert count() >= 0
    with tenancy.restrict_to("stranger"):
        assert count() == 0 or not row_security
    database.close()


def test_a_request_of_a_public_path_or_without_a_key_sets_its_own_tenancy(
    application: Application, curie: str
) -> None:
    def ask() -> tuple[int, int]:
        client = TestClient(create_app(application), raise_server_exceptions=False)
        return client.get("/readyz").status_code, client.get(f"/collections/{curie}").status_code

    assert Context().run(ask) == (200, 200)
