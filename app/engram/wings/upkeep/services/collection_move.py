"""Moving a collection to another database: exactly once, and again from where it stopped."""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from psycopg.abc import Buffer
from sqlalchemy import Table

from engram.config.safe_urls import is_safe_url
from engram.context.errors import ConfigurationError, ConflictError, NotFoundError, UnavailableError
from engram.services.revocation.verification import VerificationService
from engram.services.revocation.verification_findings import VerificationReport
from engram.storage import moved_collections
from engram.storage.auth import access_key_rows
from engram.storage.corpus import collections
from engram.storage.database import Administrator, Database
from engram.storage.maintenance import vector_indexes
from engram.storage.maintenance.schema_standing import load_standing
from engram.storage.moved_collections import ARRIVING, MOVED, MOVING, SWITCHED, build_move_error
from engram.storage.question import episode_partitions
from engram.wings.upkeep.services.backup_service import Progress, ignore_progress
from engram.wings.upkeep.services.held_locks import exclude_upkeep
from engram.wings.upkeep.storage import collection_moves
from engram.wings.upkeep.storage.collection_moves import HeldCollection, TableDigest

PATIENCE_SECONDS = 600.0
RETRY_SECONDS = 0.2
"""How long, and how often, a table is asked for that others write to."""
ROWS_PER_LOOK = 1_000


@dataclass(frozen=True, slots=True)
class Place:
    """A database, and what verifies the collections in it."""

    database: Database
    verification: VerificationService


@dataclass(frozen=True, slots=True)
class MoveReport:
    """Effects of a move.

    Attributes:
        rows: table -> rows of the collection, of those that this run copied.
        verified: rows that verification compared in the other database; 0: an earlier run did.
    """

    rows: dict[str, int]
    verified: int


@dataclass(slots=True)
class _CountedRows:
    """Rows on their way, of so many."""

    total: int
    progress: Progress
    should_stop: Callable[[], bool]
    done: int = 0

    def count(self, rows: Iterable[Buffer]) -> Iterator[Buffer]:
        for row in rows:
            self.done += 1
            if self.done % ROWS_PER_LOOK == 0:
                self.progress("rows copied", min(self.done, self.total), self.total)
                if self.should_stop():
                    raise UnavailableError("Stopped; run the same command again to go on.")
            yield row


class CollectionMoveService:
    """Moves collections from one database to another.

    The stages, each of which another run finds and goes on from:

    1. The collection is hidden at the source, and triggers refuse every change of its rows there.
    2. A hidden collection in the other database gets table after table, each in a transaction that ends only if
       digests of the rows are equal.
    3. It is verified in the transaction that shows it. Before this one commits, the source is marked as switched.
    4. The rows at the source are left to the removal of deleted collections.
    """

    def __init__(self, source: Place, target: Place, index_memory_mb: int) -> None:
        self._source = source
        self._target = target
        self._index_memory_mb = index_memory_mb

    def move(
        self,
        name: str,
        tenant: str,
        *,
        forward_to: str | None = None,
        progress: Progress = ignore_progress,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> MoveReport:
        """Move a collection, or go on with its move.

        Args:
            forward_to: address of the API that serves the other database, to which requests are sent on then.

        Raises:
            NotFoundError: there is no such collection.
            ConflictError: it moves somewhere else, or the other database has one of its name.
            ConfigurationError: one of the databases cannot take part, the address is none, or what the collection
                learned does not follow from its log.
            UnavailableError: a database is out of reach or busy, or it was told to stop. Run it again.
        """
        self._check_places()
        if forward_to is not None:
            forward_to = check_address(forward_to)
        with exclude_upkeep(self._source.database), exclude_upkeep(self._target.database):
            held = self._find(name, tenant)
            if held.stage is None:
                held = self._begin(name, tenant, held, forward_to)
            if held.stage == MOVED:
                return MoveReport({}, 0)
            if held.stage == MOVING:
                report = self._transfer(name, tenant, held, progress, should_stop)
            else:  # an earlier run ended between the two commits of a switch, or later
                report = MoveReport({}, 0)
                with self._target.database.write() as writer:
                    collection_moves.show_arrival(writer, held.move["id"], self._read(held)["collection"])
            self._open_tables(held, progress)
            with self._source.database.write() as writer:
                collection_moves.release(writer, held.id)
        return report

    def give_up(self, name: str, tenant: str, progress: Progress = ignore_progress) -> None:
        """End a move that is not over: the collection stays, and what arrived of it goes.

        Raises:
            NotFoundError: there is no such collection.
            ConflictError: it does not move, or has moved already.
            UnavailableError: as ``move``.
        """
        with exclude_upkeep(self._source.database):
            held = self._find(name, tenant)
            if held.stage != MOVING:
                raise ConflictError(f"There is no move of {name!r} that could be given up.")
            with self._target.database.write() as writer:
                collection_moves.discard_arrival(writer, held.move["id"])
            self._open_tables(held, progress)
            with self._source.database.write() as writer:
                collection_moves.stay(writer, held.id)

    def copy_keys(self, tenant: str) -> int:
        """Copy the tenant's access keys that count and are not in the other database yet; their number.

        Raises:
            ConflictError: another principal judges there under the name of one's judge.
        """
        with self._source.database.read() as reader:
            keys = collection_moves.read_keys(reader, tenant)
        with self._target.database.write() as writer:
            for key in keys:
                if access_key_rows.is_judge_name_taken(writer, tenant, key["judge"], key["name"]):
                    raise ConflictError(
                        f"Another principal than {key['name']!r} judges as {key['judge']!r} in the other database."
                    )
            return sum(collection_moves.write_key(writer, key) for key in keys)

    def _check_places(self) -> None:
        identities = set()
        for database in (self._source.database, self._target.database):
            with database.read() as reader:
                if reader.distributed:
                    raise ConfigurationError(f"{database.address} is a cluster's, which moves no collections.")
                if load_standing(reader) != "current":
                    raise ConfigurationError(
                        f"{database.address} has another schema than this version: migrate it."
                    )
                identities.add(collection_moves.identify(reader))
        if len(identities) == 1:
            raise ConfigurationError(f"{self._target.database.address} is where the collection is.")

    def _find(self, name: str, tenant: str) -> HeldCollection:
        with self._source.database.read() as reader:
            held = collection_moves.find(reader, name, tenant)
        if held is None:
            raise collections.build_missing_error(name)
        if held.stage == ARRIVING:
            raise build_move_error(name, held.move)
        if held.stage is not None and held.move["to"] != self._target.database.address:
            raise ConflictError(f"{name!r} moves to {held.move['to']}: name that, or give the move up.")
        return held

    def _begin(self, name: str, tenant: str, held: HeldCollection, address: str | None) -> HeldCollection:
        with self._target.database.read() as reader:
            arrival = collection_moves.find(reader, name, tenant)
        if arrival is not None and arrival.stage != MOVED:
            raise ConflictError(f"{self._target.database.address} has a collection {name!r}.")
        with self._source.database.snapshot() as reader:
            collection_moves.list_tables(reader)
            collection = collections.load_by_id(reader, held.id)
            _check_clean(self._source.verification.verify_on(reader, collection, 1))
        move = {"id": str(uuid.uuid4()), "stage": MOVING, "to": self._target.database.address, "url": address}
        with self._source.database.write() as writer:
            if not collection_moves.hide(writer, held.id, move):
                raise collections.build_gone_error(name)
        return self._find(name, tenant)

    def _transfer(
        self,
        name: str,
        tenant: str,
        held: HeldCollection,
        progress: Progress,
        should_stop: Callable[[], bool],
    ) -> MoveReport:
        """Do what is left up to the switch, and switch."""
        with self._source.database.administer() as administrator:
            collection_moves.make_refusal(administrator)
        self._on_each_table(collection_moves.refuse_writes, held, "tables closed", progress)
        arrival = self._open_arrival(name, tenant, held)
        rows = self._copy(held, arrival, progress, should_stop)
        self._index(held, arrival, progress)
        return MoveReport(rows, self._switch(held))

    def _open_arrival(self, name: str, tenant: str, held: HeldCollection) -> HeldCollection:
        """Find the hidden collection in the other database, or make it."""
        with self._target.database.read() as reader:
            arrival = collection_moves.find(reader, name, tenant)
        if arrival is not None and arrival.move.get("id") == held.move["id"]:
            return arrival
        with self._source.database.read() as reader:
            numbers, weeks = collection_moves.read_sequences(reader), episode_partitions.list_standing(reader)
        sets = numbers.pop(collection_moves.SET_SEQUENCE, 0)
        for sequence, last in numbers.items():
            with self._target.database.write() as writer:
                collection_moves.advance(writer, sequence, last)
        for week in weeks:
            with self._target.database.write() as writer:
                episode_partitions.make(writer, week)
        with self._target.database.write() as writer:
            offset = collection_moves.advance(writer, collection_moves.SET_SEQUENCE, sets)
            move = {"id": held.move["id"], "stage": ARRIVING, "set_offset": offset, "tables": {}}
            collection_moves.open_arrival(writer, self._read(held), move)
        return self._open_arrival(name, tenant, held)

    def _read(self, held: HeldCollection) -> dict[str, Any]:
        with self._source.database.read() as reader:
            return collection_moves.read_row(reader, held.id)

    def _copy(
        self, held: HeldCollection, arrival: HeldCollection, progress: Progress, should_stop: Callable[[], bool]
    ) -> dict[str, int]:
        """Copy the tables that have not been copied; table -> rows."""
        offset, earlier = arrival.move["set_offset"], arrival.move["tables"]
        digests: dict[Table, TableDigest] = {}
        with self._source.database.administer(should_stop) as source:
            tables = [table for table in collection_moves.list_tables(source) if table.name not in earlier]
            for table in tables:
                digests[table] = collection_moves.compute_digest(source, table, held.id, offset)
                progress("tables read", len(digests), len(tables))
            counted = _CountedRows(sum(digest.rows for digest in digests.values()), progress, should_stop)
            for table, digest in digests.items():
                rows = collection_moves.copy_out(source, table, held.id, arrival.id, offset)
                with self._target.database.write_long(should_stop) as writer:
                    if digest.rows:
                        collection_moves.copy_in(writer, table, counted.count(rows))
                    if collection_moves.compute_digest(writer, table, arrival.id) != digest:
                        raise ConfigurationError(f"The rows of {table.name} did not arrive as they were.")
                    collection_moves.record_copied(writer, arrival.id, table, digest.rows)
        with self._target.database.administer(should_stop) as administrator:
            for table, digest in digests.items():
                if digest.rows:
                    collection_moves.analyse(administrator, table)
        return {table.name: digest.rows for table, digest in digests.items()}

    def _index(self, held: HeldCollection, arrival: HeldCollection, progress: Progress) -> None:
        """Build the vector indexes that the collection had."""
        with self._target.database.administer() as administrator:
            for index in vector_indexes.indexes(administrator):
                if index.collection_id == arrival.id and not index.valid:  # a killed run left it
                    vector_indexes.drop(administrator, index.name)
            for number, table in enumerate(held.indexed, start=1):
                vector_indexes.build(
                    administrator, table, arrival.id, held.encoder_dimension, self._index_memory_mb
                )
                progress("indexes built", number, len(held.indexed))
        with self._target.database.write() as writer:
            collections.record_indexed(writer, arrival.id, held.indexed)

    def _switch(self, held: HeldCollection) -> int:
        """Show the collection in the other database and mark it as moved at the source; what was verified."""
        own = self._read(held)["collection"]
        with self._target.database.write_long() as writer:
            arrived_id = collection_moves.show_arrival(writer, held.move["id"], own)
            assert arrived_id is not None  # noqa: S101 - nobody else shows it
            report = self._target.verification.verify_on(writer, collections.load_by_id(writer, arrived_id), 1)
            _check_clean(report)
            with self._source.database.write() as source:
                collection_moves.set_stage(source, held.id, SWITCHED)
        return report.rows

    def _open_tables(self, held: HeldCollection, progress: Progress) -> None:
        self._on_each_table(collection_moves.allow_writes, held, "tables opened", progress)
        with self._source.database.administer() as administrator:
            collection_moves.drop_refusal(administrator)

    def _on_each_table(
        self,
        act: Callable[[Administrator, Table, int], None],
        held: HeldCollection,
        stage: str,
        progress: Progress,
    ) -> None:
        """Act on each table of the source, again while others hold it."""
        with self._source.database.read() as reader:
            tables = collection_moves.list_tables(reader)
        done, until = 0, time.monotonic() + PATIENCE_SECONDS
        while done < len(tables):
            try:
                with self._source.database.administer() as administrator:
                    collection_moves.wait_briefly(administrator)
                    while done < len(tables):
                        act(administrator, tables[done], held.id)
                        done += 1
                        progress(stage, done, len(tables))
            except UnavailableError:
                if time.monotonic() > until:
                    raise
                time.sleep(RETRY_SECONDS)


def forward(database: Database, name: str, tenant: str, address: str) -> None:
    """Have the API send requests about a collection, which lives in another database, on to the API of that one.

    Args:
        address: of that API, such as ``https://b.example``.

    Raises:
        ConfigurationError: the address is none.
        ConflictError: the collection lives here, or is being moved.
    """
    address = check_address(address)
    with database.write() as writer:
        if not moved_collections.set_route(writer, tenant, name, address):
            raise ConflictError(f"{name!r} lives in {database.address}, or is being moved.")


def stop_forwarding(database: Database, name: str, tenant: str) -> None:
    """Undo ``forward``, and what a move left: the collection is not found from then on.

    Raises:
        NotFoundError: nobody said that it lives in another database.
    """
    with database.write() as writer:
        if not moved_collections.forget(writer, tenant, name):
            raise NotFoundError(f"No collection {name!r} lives in another database.")


def check_address(address: str) -> str:
    """Return the address of an API without a slash at its end.

    Raises:
        ConfigurationError: it is none.
    """
    if not is_safe_url(address) or set(address) & set("?#@"):
        raise ConfigurationError(
            f"{address!r} is no address to forward to: callers' keys go there, so say https:// or name this host."
        )
    return address.rstrip("/")


def _check_clean(report: VerificationReport) -> None:
    if not report.clean:
        raise ConfigurationError(
            f"{report.collection}: what was learned does not follow from its log; engram verify -c "
            f"{report.collection} says where."
        )
