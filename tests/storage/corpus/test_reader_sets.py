"""What a connection sees while sets of readers come: they are looked up once in a block, and hidden until then."""

from collections.abc import Callable, Iterator
from time import monotonic
from types import SimpleNamespace

import pytest

from engram.context import tenancy
from engram.storage import database as storage
from engram.storage.corpus import reader_sets
from engram.storage.database import Database
from engram.storage.schema_revision import migrate

ANA = tenancy.ReaderNames(("user:ana",))


@pytest.fixture
def database(empty_database: str) -> Iterator[Database]:
    migrate(empty_database)
    database = Database(empty_database, pool_size=2)
    with database.write() as writer:
        writer.execute(
            "INSERT INTO collection (name, encoder_model, encoder_fingerprint, encoder_dimension) "
            "VALUES ('docs', '', '', 1)"
        )
    yield database
    database.close()


@pytest.fixture
def add(database: Database) -> Callable[..., None]:
    """Adds a passage with these readers, as somebody who sees everything."""

    def run(name: str, *readers: str) -> None:
        with tenancy.allow_all_tenants(), database.write() as writer:
            target = writer.scalar("SELECT id FROM collection")
            writer.execute(
                """
                INSERT INTO passage
                    (collection_id, external_id, text, language, content_hash, embedding, reader_set_id)
                VALUES (%(c)s, %(name)s, '', 'en', '', '[1]', %(set)s)
                """,
                {"c": target, "name": name, "set": reader_sets.make(writer, target, [readers])[readers]},
            )

    return run


def seen(database: Database) -> list[str]:
    with database.read() as reader:
        return [row.external_id for row in reader.rows("SELECT external_id FROM passage ORDER BY 1")]


def test_a_new_set_of_readers_is_hidden_until_it_is_looked_up(
    database: Database, add: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    add("first", "user:ana")
    add("hidden", "user:bo")
    with tenancy.restrict_to("local", ANA):
        assert seen(database) == ["first"]
        add("second", "user:ana", "user:bo")
        assert seen(database) == ["first"]
        with tenancy.restrict_to("local", ANA):
            assert seen(database) == ["first", "second"]
        assert seen(database) == ["first"]
        later = monotonic() + storage.FOUND_SETS_SECONDS
        monkeypatch.setattr(storage, "time", SimpleNamespace(monotonic=lambda: later))
        assert seen(database) == ["first", "second"]


def test_what_a_block_wrote_it_sees_at_once(database: Database, add: Callable[..., None]) -> None:
    add("first", "user:ana")
    with tenancy.restrict_to("local", ANA):
        assert seen(database) == ["first"]
        with tenancy.allow_all_readers(), database.write() as writer:
            target = writer.scalar("SELECT id FROM collection")
            [made] = reader_sets.make(writer, target, [("group:hr", "user:ana")]).values()
            reader_sets.assign(writer, target, made, [writer.scalar("SELECT id FROM passage")])
        assert seen(database) == ["first"]


def test_the_first_set_of_all_binds_a_block_that_saw_none(database: Database, add: Callable[..., None]) -> None:
    with tenancy.restrict_to("local", ANA):
        assert seen(database) == []
        add("hidden", "user:bo")
        assert seen(database) == []


def test_sets_that_one_database_has_say_nothing_of_another(
    database: Database, add: Callable[..., None], empty_database: str
) -> None:
    add("hidden", "user:bo")
    other = Database(empty_database)
    with tenancy.restrict_to("local", ANA):
        tenancy.get_visibility().reader_sets[other] = "{1}", monotonic()
        assert seen(database) == []
        assert seen(other) == ["hidden"]
    other.close()


def test_a_connection_goes_from_caller_to_caller(database: Database, add: Callable[..., None]) -> None:
    add("ana", "user:ana")
    add("bo", "user:bo")
    bo = tenancy.ReaderNames(("user:bo",))
    with tenancy.restrict_to("local", ANA):
        found = [seen(database)]
        with tenancy.restrict_to("local", bo):
            found.append(seen(database))
        found.append(seen(database))
        with tenancy.allow_all_readers():
            found.append(seen(database))
        found.append(seen(database))
        with tenancy.restrict_to("elsewhere", ANA), database.read() as reader:
            assert reader.reader_sets is None
        found.append(seen(database))
    assert found == [["ana"], ["bo"], ["ana"], ["ana", "bo"], ["ana"], ["ana"]]


def test_sets_are_looked_up_once_in_a_block(
    database: Database, add: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    add("ana", "user:ana")
    with tenancy.restrict_to("local", ANA):
        seen(database)
        monkeypatch.setattr(storage, "_SERVE_READERS", "SELECT 1 / 0")
        assert seen(database) == ["ana"]
