"""Connections: what a reader may, what a writer keeps, and what a lost or slow server looks like."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import exc

import engram
from engram.composition.container import Servers
from engram.context import tenancy
from engram.context.errors import ConfigurationError, UnavailableError, is_out_of_reach
from engram.storage.corpus import collections
from engram.storage.database import Database
from engram.storage.schema_revision import migrate


@pytest.fixture
def database(addresses: Servers) -> Iterator[Database]:
    database = Database(addresses.database_url, pool_size=1, statement_timeout_seconds=10)
    yield database
    database.close()


def exists(database: Database, name: str) -> bool:
    with database.read() as reader:
        return bool(reader.scalar("SELECT EXISTS (SELECT FROM collection WHERE name = %(n)s)", {"n": name}))


INSERT = (
    "INSERT INTO collection (name, encoder_model, encoder_fingerprint, encoder_dimension) VALUES (%(n)s, '', '', 8)"
)
FAILING = "DO $$ BEGIN RAISE EXCEPTION 'as told' USING ERRCODE = '{state}'; END $$"


def test_a_writer_forgets_what_a_failed_block_wrote(database: Database, collection: str) -> None:
    def write_and_fail() -> None:
        with database.write() as writer:
            writer.execute(INSERT, {"n": collection})
            raise KeyError("later")

    with pytest.raises(KeyError):
        write_and_fail()
    assert not exists(database, collection)


def test_a_failed_statement_takes_the_whole_block_along(database: Database, collection: str) -> None:
    def write_twice() -> None:
        with database.write() as writer:
            writer.execute(INSERT, {"n": collection})
            writer.execute(INSERT, {"n": collection})

    with pytest.raises(exc.IntegrityError):
        write_twice()
    assert not exists(database, collection)


def test_reads_see_statements_executed_ahead(database: Database, collection: str) -> None:
    with database.write() as writer:
        with writer.ahead():
            assert writer.execute(INSERT, {"n": collection}) == -1
            count = writer.scalar("SELECT count(*) FROM collection WHERE name = %(n)s", {"n": collection})
        assert count == 1
        assert writer.execute("UPDATE collection SET space = 1 WHERE name = %(n)s", {"n": collection}) == 1

    assert exists(database, collection)


@pytest.mark.parametrize("reads", [False, True])
def test_refused_pipelined_statement_raises_and_writes_nothing(
    database: Database, collection: str, reads: bool
) -> None:
    def write_twice() -> None:
        with database.write() as writer, writer.ahead():
            writer.execute(INSERT, {"n": collection})
            writer.execute(INSERT, {"n": collection})
            if reads:
                writer.scalar("SELECT 1")
                pytest.fail("it was read after a statement that was refused")

    with pytest.raises(exc.IntegrityError, match="duplicate key"):
        write_twice()
    assert not exists(database, collection)  # by the one connection that there is


def test_the_server_refuses_what_a_reader_writes(database: Database, collection: str) -> None:
    with pytest.raises(exc.DBAPIError) as refusal, database.read() as reader:
        reader.rows(f"{INSERT} RETURNING id", {"n": collection})

    assert isinstance(refusal.value.orig, psycopg.errors.ReadOnlySqlTransaction)
    assert not exists(database, collection)


def test_a_reader_sees_what_was_committed_meanwhile(database: Database, collection: str) -> None:
    with database.read() as reader:
        before = reader.scalar("SELECT count(*) FROM collection WHERE name = %(n)s", {"n": collection})
        with database.write() as writer:
            writer.execute(INSERT, {"n": collection})
        after = reader.scalar("SELECT count(*) FROM collection WHERE name = %(n)s", {"n": collection})

    assert (before, after) == (0, 1)


@pytest.mark.parametrize("kind", ["read", "write"])
def test_the_use_after_a_lost_backend_works(
    database: Database, bystander: "psycopg.Connection[Any]", kind: str
) -> None:
    use = getattr(database, kind)
    with use() as connection:
        backend = connection.scalar("SELECT pg_backend_pid()")
    bystander.execute("SELECT pg_terminate_backend(%s::int, 5000)", (backend,))

    with use() as connection:
        assert connection.scalar("SELECT pg_backend_pid()") != backend


def test_lost_backend_is_unavailable_and_writes_nothing(
    database: Database, bystander: "psycopg.Connection[Any]", collection: str
) -> None:
    def write_and_be_cut_off() -> None:
        with database.write() as writer:
            writer.execute(INSERT, {"n": collection})
            backend = writer.scalar("SELECT pg_backend_pid()")
            bystander.execute("SELECT pg_terminate_backend(%s::int, 5000)", (backend,))
            writer.scalar("SELECT 1")

    with pytest.raises(UnavailableError, match="Postgres"):
        write_and_be_cut_off()
    assert not exists(database, collection)


def test_backend_lost_during_a_pipelined_block_is_unavailable_and_writes_nothing(
    database: Database, bystander: "psycopg.Connection[Any]", collection: str
) -> None:
    def write_and_be_cut_off() -> None:
        with database.write() as writer:
            backend = writer.scalar("SELECT pg_backend_pid()")
            with writer.ahead():
                writer.execute(INSERT, {"n": collection})
                bystander.execute("SELECT pg_terminate_backend(%s::int, 5000)", (backend,))

    with pytest.raises(UnavailableError, match="Postgres"):
        write_and_be_cut_off()
    assert not exists(database, collection)


ANA = tenancy.ReaderNames(("user:ana",))


@pytest.mark.parametrize("fails", ["SET ROLE", "set_config"])
@pytest.mark.parametrize("error", [psycopg.OperationalError("lost"), psycopg.DataError("odd"), KeyError("ours")])
@pytest.mark.parametrize("kind", ["read", "snapshot", "write", "write_once", "write_long", "administer"])
def test_what_fails_before_a_transaction_leaves_nothing_on_the_connection(
    addresses: Servers, monkeypatch: pytest.MonkeyPatch, collection: str, kind: str, error: Exception, fails: str
) -> None:
    database = Database(addresses.database_url, pool_size=1, row_security=True)

    def fail_instead(method: Any) -> Any:
        def run(self: Any, statement: Any, *arguments: Any, **options: Any) -> Any:
            if fails in str(statement):
                raise error
            return method(self, statement, *arguments, **options)

        return run

    with database.write() as writer, database.read() as reader:  # both pools have their connection
        assert writer.scalar("SELECT 1") == reader.scalar("SELECT 1")
    with monkeypatch.context() as patch:
        for one in (psycopg.Connection, psycopg.ClientCursor):
            patch.setattr(one, "execute", fail_instead(one.execute))
        with (
            pytest.raises((UnavailableError, exc.DBAPIError, psycopg.Error, KeyError)),
            tenancy.restrict_to("local", ANA),
            getattr(database, kind)(),
        ):
            pytest.fail("nothing failed")

    def write_and_fail() -> None:
        with database.write() as writer:
            assert writer.scalar("SELECT current_user = session_user")
            writer.execute(INSERT, {"n": collection})
            raise KeyError("later")

    with pytest.raises(KeyError, match="later"):
        write_and_fail()
    assert not exists(database, collection)
    database.close()


def test_an_unreachable_server_is_unavailable() -> None:
    database = Database("postgresql://nobody@127.0.0.1:1/nothing")
    for use in (database.read, database.write):
        with pytest.raises(UnavailableError, match="Postgres"), use():
            pass


def test_a_statement_that_takes_too_long_is_unavailable(addresses: Servers) -> None:
    database = Database(addresses.database_url, pool_size=1, statement_timeout_seconds=0.2)
    try:
        for use in (database.read, database.write):
            with pytest.raises(UnavailableError, match="statement timeout"), use() as connection:
                connection.scalar("SELECT pg_sleep(30)")
            with use() as connection:
                assert connection.scalar("SELECT 1") == 1
    finally:
        database.close()


def test_an_administrator_is_not_timed_and_stands_in_no_transaction(addresses: Servers) -> None:
    database = Database(addresses.database_url, pool_size=1, statement_timeout_seconds=0.2)
    try:
        with database.administer() as administrator:
            administrator.scalar("SELECT pg_sleep(0.3)")
            administrator.execute("VACUUM collection")
    finally:
        database.close()


def test_stopped_administrator_cancels_its_statement(database: Database) -> None:
    with (
        pytest.raises(UnavailableError, match="user request"),
        database.administer(lambda: True) as administrator,
    ):
        administrator.scalar("SELECT pg_sleep(60)")


@pytest.mark.parametrize("state", ["never migrated", "migrated back"])
def test_a_database_without_the_schema_says_what_to_do(empty_database: str, state: str) -> None:
    if state == "migrated back":
        migrate(empty_database)
        migrate(empty_database, "base")
    database = Database(empty_database, pool_size=1)
    try:
        with pytest.raises(ConfigurationError, match="engram migrate"), database.read() as reader:
            collections.find(reader, "any")
    finally:
        database.close()


def test_an_address_of_something_else_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="postgresql://"):
        Database("mysql://localhost/engram")


def test_a_lock_is_held_by_one_and_let_go_at_the_end(database: Database, addresses: Servers) -> None:
    other = Database(addresses.database_url, pool_size=1)
    try:
        with database.hold_lock("one") as mine, other.hold_lock("one") as theirs, other.hold_lock("two") as free:
            assert (mine, theirs, free) == (True, False, True)
        with other.hold_lock("one") as theirs:
            assert theirs
    finally:
        other.close()


def test_only_the_database_module_commits() -> None:
    folder = Path(engram.__file__).parent
    committing = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if re.search(r"\.commit\(", path.read_text())
    }

    assert committing == {"storage/database.py"}


def test_a_snapshot_does_not_see_what_is_written_meanwhile(database: Database, collection: str) -> None:
    count = "SELECT count(*) FROM collection WHERE name = %(n)s"
    with database.snapshot() as reader:
        assert reader.scalar(count, {"n": collection}) == 0
        with database.write() as writer:
            writer.execute(INSERT, {"n": collection})
        assert reader.scalar(count, {"n": collection}) == 0

    assert exists(database, collection)


def test_a_snapshot_cannot_write_and_leaves_readers_as_they_were(database: Database, collection: str) -> None:
    with database.snapshot() as reader, pytest.raises(exc.InternalError, match="read-only"):
        reader.row(f"{INSERT} RETURNING id", {"n": collection})
    with database.read() as reader:
        assert reader.scalar("SHOW transaction_isolation") == "read committed"
        assert reader.scalar("SELECT count(*) FROM collection WHERE name = %(n)s", {"n": collection}) == 0
        with database.write() as writer:
            writer.execute(INSERT, {"n": collection})
        assert reader.scalar("SELECT count(*) FROM collection WHERE name = %(n)s", {"n": collection}) == 1


@pytest.mark.parametrize("state", ["53100", "53200", "53300", "57P01", "57P03", "58000", "58030", "08006", "55P03"])
@pytest.mark.parametrize("kind", ["read", "write"])
def test_server_failure_is_unavailable_and_no_attempt(database: Database, kind: str, state: str) -> None:
    with pytest.raises(UnavailableError, match="as told") as failure, getattr(database, kind)() as connection:
        connection.rows(FAILING.format(state=state))
    assert is_out_of_reach(failure.value)


@pytest.mark.parametrize("state", ["40P01", "53400", "54001", "57014"])
def test_statement_failure_counts_as_an_attempt(database: Database, state: str) -> None:
    with pytest.raises(UnavailableError, match="as told") as failure, database.write() as writer:
        writer.rows(FAILING.format(state=state))
    assert not is_out_of_reach(failure.value)


@pytest.mark.parametrize("state", ["22012", "P0001", "XX000", "XX001"])
def test_a_failure_of_another_kind_stays_what_it_is(database: Database, state: str) -> None:
    with pytest.raises(exc.DBAPIError, match="as told"), database.write() as writer:
        writer.rows(FAILING.format(state=state))


def test_a_server_that_takes_no_writes_is_unavailable(database: Database, collection: str) -> None:
    def write() -> None:
        with database.write() as writer:
            writer.execute("SET LOCAL transaction_read_only = on")
            writer.execute(INSERT, {"n": collection})

    with pytest.raises(UnavailableError, match="read-only") as failure:
        write()
    assert is_out_of_reach(failure.value)


def test_a_session_that_the_server_ended_for_idling_is_unavailable(database: Database, collection: str) -> None:
    def wait_in_transaction() -> None:
        with database.write() as writer:
            writer.execute(INSERT, {"n": collection})
            backend = writer.scalar("SELECT pg_backend_pid()")
            writer.execute("SET LOCAL idle_in_transaction_session_timeout = 1")
            with database.read() as reader:
                while reader.scalar("SELECT count(*) FROM pg_stat_activity WHERE pid = %(p)s", {"p": backend}):
                    pass
            writer.scalar("SELECT 1")

    with pytest.raises(UnavailableError, match=r"idle-in-transaction|closed the connection"):
        wait_in_transaction()
    assert not exists(database, collection)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT '[1,2]'::vector <#> '[1,2,3]'::vector AS distance",
        "SELECT '[1,2]'::halfvec <#> '[1,2,3]'::halfvec AS distance",
        "SELECT ('[1,2]'::vector)::vector(3) AS cast",
    ],
)
def test_vectors_that_were_exchanged_meanwhile_are_a_passing_fault(database: Database, statement: str) -> None:
    with pytest.raises(UnavailableError, match="given other vectors at this moment"), database.read() as reader:
        reader.rows(statement)
