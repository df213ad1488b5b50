"""Removes deleted collections, piece by piece."""

from collections.abc import Callable

import structlog

from engram.context import tenancy
from engram.storage.corpus import collection_deletion
from engram.storage.corpus.collections import Collection, build_gone_error
from engram.storage.database import Database
from engram.storage.jobs import jobs

log = structlog.get_logger(__name__)


class RemovalService:
    """Deletes collections with everything in them.

    The first transaction hides a collection from everyone. If a removal is interrupted after that, the next one
    goes on with it: workers look for what was left.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def remove(self, target: Collection, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Delete the collection and return when nothing is left of it.

        Args:
            should_stop: polled; once true, the rest is left to ``run``.

        Raises:
            NotFoundError: it was deleted meanwhile. A new collection of its name stays.
            UnavailableError: Postgres is out of reach. If the collection is hidden already, a worker removes the
                rest.
        """
        with self._database.write() as writer:
            if not collection_deletion.begin(writer, target.id):
                raise build_gone_error(target.name)
            jobs.cancel_all(writer, target.id)
        log.info("collection deleted", collection=target.name)
        self._empty(target.id, should_stop)

    def run(self, should_stop: Callable[[], bool] = lambda: False, tenant: str | None = None) -> int:
        """Remove what is left of deleted collections, of a tenant or of all; return how many this call completed.

        Raises:
            UnavailableError: Postgres is out of reach.
        """
        with tenancy.allow_all_tenants(), self._database.read() as reader:
            collection_ids = collection_deletion.collections_to_delete(reader, tenant)
        return sum(self._empty(collection_id, should_stop) for collection_id in collection_ids)

    def _empty(self, collection_id: int, should_stop: Callable[[], bool]) -> bool:
        """Remove all rows; return whether this call completed the removal, not another one at the same time."""
        with tenancy.allow_all_tenants():
            rows = 0
            for table in collection_deletion.tables():
                after, more = None, True
                while more:
                    if should_stop():
                        return False
                    with self._database.write() as writer:
                        if not collection_deletion.claim(writer, collection_id):
                            return False
                        emptied = collection_deletion.remove_piece(writer, collection_id, table, after)
                    rows, after, more = rows + emptied.rows, emptied.last, emptied.last is not None
            for table in collection_deletion.tables():
                with self._database.read() as reader:
                    collection_deletion.has_rows(reader, collection_id, table)
            with self._database.write() as writer:
                if not collection_deletion.claim(writer, collection_id):
                    return False
                collection_deletion.end(writer, collection_id)
        log.info("collection removed", rows=rows)
        return True
