"""Addresses of Postgres and Redis, and a process's connections."""

from contextlib import ExitStack
from dataclasses import dataclass

from engram.composition.locked_property import locked_property
from engram.config.settings import Settings
from engram.storage.access_notices import Notices
from engram.storage.database import Database
from engram.storage.rate_buckets import Buckets
from engram.storage.read_positions import Positions
from engram.storage.wake_stream import WakeStream

STATEMENT_TIMEOUT_SECONDS = 30.0
"""Longest time of one SQL statement; index maintenance and migrations have no limit."""
HNSW_EF_SEARCH = 100
"""Breadth of a search by a vector index."""
READ_LAG_SECONDS = 10.0
"""A replica that is further behind is not read."""
READ_WAIT_SECONDS = 0.25
"""How long a read waits for the replica to have what it must see; then it goes to the primary."""


@dataclass(frozen=True, slots=True)
class Servers:
    """Addresses of Postgres and Redis."""

    database_url: str
    redis_url: str


class Connections:
    """Connections of one process to its servers. Those that few processes need are opened when first used.

    Args:
        consumer: name of the process among the readers of the wake-up stream.

    Raises:
        ConfigurationError: an address cannot be read; nothing stays open.
    """

    def __init__(self, settings: Settings, addresses: Servers, consumer: str) -> None:
        replica_url = settings.read_database_url
        self._redis_url = addresses.redis_url
        with ExitStack() as opened:  # closed where a later one cannot be opened
            self.database = Database(
                addresses.database_url,
                pool_size=settings.database_pool_size,
                statement_timeout_seconds=STATEMENT_TIMEOUT_SECONDS,
                hnsw_ef_search=HNSW_EF_SEARCH,
                row_security=settings.row_security,
                replica_url=None if replica_url is None else replica_url.get_secret_value(),
                replica_lag_seconds=READ_LAG_SECONDS,
                replica_wait_seconds=READ_WAIT_SECONDS,
            )
            opened.callback(self.database.close)
            self.stream = WakeStream(addresses.redis_url, consumer)
            opened.callback(self.stream.close)
            self._closing = opened.pop_all()

    @locked_property
    def positions(self) -> Positions:
        """Write positions that reads on the replica must have reached."""
        positions = Positions(self._redis_url)
        self._closing.callback(positions.close)
        return positions

    @locked_property
    def notices(self) -> Notices:
        """Notices of changed access keys, sent to all processes."""
        notices = Notices(self._redis_url)
        self._closing.callback(notices.close)
        return notices

    @locked_property
    def buckets(self) -> Buckets:
        """Counters of request rates."""
        buckets = Buckets(self._redis_url)
        self._closing.callback(buckets.close)
        return buckets

    def close(self) -> None:
        """Close every connection."""
        self._closing.close()
