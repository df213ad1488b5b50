"""Deleting collections: gone at once for everybody, and then piece by piece until nothing is left."""

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest
from sqlalchemy import Table
from sqlalchemy.engine import make_url

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context.errors import GoneError, NotFoundError
from engram.services.auth.scope import Scope
from engram.services.question.query import Query
from engram.storage.auth import tenants
from engram.storage.corpus import collection_deletion
from engram.storage.corpus.collection_deletion import DeletedPiece
from engram.storage.database import Database, Writer
from engram.storage.maintenance.gauge_queries import counts
from tests.support import large, state
from tests.support.databases import application_on, open_migrated

ROWS = 250
THAMES = {"id": "thames", "text": "The Thames flows through London."}


@pytest.fixture
def full(addresses: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    """One on a database with a collection, ``large``, that has rows in nearly every table."""
    with open_migrated(addresses) as servers:
        address = make_url(servers.database_url).set(drivername="postgresql")
        with psycopg.connect(address.render_as_string(hide_password=False)) as connection:
            large.fill(connection, dimension=384, passages=40)
            made_with = (application.models.encoder.id.model, application.models.encoder.id.fingerprint)
            connection.execute("UPDATE collection SET encoder_model = %s, encoder_fingerprint = %s", made_with)
        with application_on(servers, settings, application) as services:
            yield services


@pytest.fixture
def scope(full: Application) -> Scope:
    """The large collection, as those found it who came before it was deleted."""
    return full.auth.access.scope("large")


def count_rows(database: Database, collection_id: int) -> int:
    """Rows of the collection in all tables."""
    each = [
        f'SELECT count(*) AS n FROM "{table.name}" WHERE collection_id = %(id)s'
        for table in collection_deletion.tables()
    ]
    with database.read() as reader:
        return int(reader.scalar(f"SELECT sum(n) FROM ({' UNION ALL '.join(each)}) AS held", {"id": collection_id}))


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of each piece, as they are removed."""
    found: list[int] = []
    remove = collection_deletion.remove_piece

    def remove_and_record(
        writer: Writer, collection_id: int, table: Table, after: Sequence[Any] | None = None
    ) -> DeletedPiece:
        emptied = remove(writer, collection_id, table, after)
        found.append(emptied.rows)
        return emptied

    monkeypatch.setattr(collection_deletion, "remove_piece", remove_and_record)
    monkeypatch.setattr(collection_deletion, "ROWS", ROWS)
    return found


def test_collection_is_deleted_in_bounded_pieces(full: Application, scope: Scope, pieces: list[int]) -> None:
    """Children go before their parents, so no piece takes rows of other tables along."""
    before = count_rows(full.database, scope.collection.id)
    assert before > 4 * ROWS

    full.corpus.ingest.delete_collection(scope)

    assert max(pieces) == ROWS
    assert sum(pieces) == before
    assert count_rows(full.database, scope.collection.id) == 0
    with full.database.read() as reader:
        assert reader.scalar("SELECT count(*) FROM collection") == 0
        assert reader.scalar("SELECT count(*) FROM key_evolution") == 0


def test_collection_under_removal_is_not_found(full: Application, scope: Scope, pieces: list[int]) -> None:
    job = full.corpus.rekey.request(scope, "abstract")
    stop_at = 3
    full.maintenance.removal.remove(scope.collection, lambda: len(pieces) >= stop_at)
    assert len(pieces) == stop_at
    left = count_rows(full.database, scope.collection.id)
    assert left > 0

    with pytest.raises(NotFoundError):
        full.auth.access.scope("large")
    with pytest.raises((NotFoundError, GoneError)):
        full.answers.question.serve(Query(text="Who lived by the river?", scope=scope))
    with pytest.raises(GoneError):
        full.corpus.ingest.delete_collection(scope)
    assert full.corpus.ingest.collections(None, 10) == []
    assert full.jobs.runner.run_ready() == 0
    assert full.learning.learner.apply_overdue(0.0, 100) == 0
    with full.database.read() as reader:
        assert reader.scalar("SELECT status FROM job WHERE id = %(id)s", {"id": job}) == "cancelled"
        assert tenants.count_held(reader, "local") == (0, 0)
        assert counts(reader).collections == 0
        assert collection_deletion.collections_to_delete(reader) == [scope.collection.id]
        assert collection_deletion.collections_to_delete(reader, "another") == []

    state.stage_passages(full, "large", THAMES)  # its name is free
    full.jobs.runner.run_ready()
    assert full.maintenance.removal.run() == 1
    assert full.maintenance.removal.run() == 0
    assert count_rows(full.database, scope.collection.id) == 0
    assert state.counts(full, "large") == state.true_counts(full, "large")
    assert full.auth.access.scope("large").collection.passage_count == 1


def test_interrupted_removal_is_finished_by_a_worker(full: Application, scope: Scope, pieces: list[int]) -> None:
    class KilledError(Exception):
        pass

    def kill_after_two() -> bool:
        if len(pieces) == 2:
            raise KilledError
        return False

    with pytest.raises(KilledError):
        full.maintenance.removal.remove(scope.collection, kill_after_two)
    assert full.maintenance.removal.run(lambda: len(pieces) > 4) == 0  # told to end as well
    assert full.maintenance.removal.run() == 1
    assert count_rows(full.database, scope.collection.id) == 0


def test_two_who_are_at_it_take_turns(full: Application, scope: Scope, pieces: list[int]) -> None:
    before = count_rows(full.database, scope.collection.id)
    full.maintenance.removal.remove(scope.collection, lambda: len(pieces) >= 1)
    gone: list[int] = []
    state.together(*[lambda: gone.append(full.maintenance.removal.run())] * 2)
    assert sum(gone) == 1
    assert sum(pieces) == before
