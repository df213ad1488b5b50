"""Choice of the server to read on: a replica that is recent enough if there is one, else the primary."""

from collections.abc import Callable
from typing import TypeVar

import structlog

from engram.context.errors import DeadlineError, UnavailableError
from engram.storage import replica
from engram.storage.database import Database
from engram.storage.read_positions import Positions
from engram.storage.replica import BehindError
from engram.telemetry import metrics

log = structlog.get_logger(__name__)
T = TypeVar("T")


class Reads:
    """Sends reads of collections to the replica or the primary.

    A caller that was told of something, as that its verdict is applied or its job is done, finds it in whatever is
    read of that collection from then on, by whomever and through whichever process.
    """

    def __init__(self, database: Database, positions: Positions) -> None:
        self._database = database
        self._positions = positions

    def note_write(self, collection_id: int) -> None:
        """Somebody is about to be told of what was committed: see that it is seen from now on.

        Raises:
            UnavailableError: Postgres is out of reach.
        """
        on = self._database.replica
        if on is not None:
            system, end = self._database.position()
            self._positions.note(system, collection_id, end)

    def on_replica(self, collection_id: int, read: Callable[[], T]) -> T:
        """Return the result of ``read``. If the replica fails or is too far behind, the primary is read.

        Args:
            read: asks the database and changes nothing; it may be called twice.
        """
        on = self._database.replica
        if on is None:
            return read()
        needed = self._find_needed_position(collection_id)
        if needed is None:
            metrics.REPLICA_READS.labels("unfit").inc()
            return read()
        try:
            with replica.require_position(needed):
                result = read()
        except DeadlineError:
            raise
        except BehindError:
            metrics.REPLICA_READS.labels("behind").inc()
        except UnavailableError as error:  # lost, promoted, or in the way of what it replays
            log.warning("read on the primary instead", error=error.detail)
            metrics.REPLICA_READS.labels("failed").inc()
        else:
            metrics.REPLICA_READS.labels("replica").inc()
            return result
        return read()

    def _find_needed_position(self, collection_id: int) -> int | None:
        on = self._database.replica
        if on is None or on.system is None or not on.usable:
            return None
        return self._positions.find_needed(on.system, collection_id, lambda: self._database.position()[1])
