"""Up to where in the primary's log readers of a collection must see: in Redis, for all processes.

Losing them loses nothing: whoever finds none sets the floor anew, at the end of the log, so that until a replica is
there no read goes to it.
"""

from collections.abc import Callable

import redis
import structlog

TIMEOUT_SECONDS = 0.25
KEPT_SECONDS = 86_400
FLOOR = "floor"
"""Beside the collections' ids: what every reader must see."""

log = structlog.get_logger(__name__)


class Positions:
    """Positions by collection, each the largest that was noted."""

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(
            url, socket_connect_timeout=TIMEOUT_SECONDS, socket_timeout=TIMEOUT_SECONDS
        )
        self._unsaid: dict[int, int] = {}

    def note(self, system: int, collection_id: int, position: int) -> None:
        """Have whoever reads the collection from now on see what stands in the log up to there.

        If Redis is out of reach, other processes do not hear of it before this one finds Redis again.
        """
        self._unsaid[collection_id] = max(position, self._unsaid.get(collection_id, 0))
        self._say(system)

    def find_needed(self, system: int, collection_id: int, end: Callable[[], int]) -> int | None:
        """Return the position that a reader of the collection must see; None, for all, if Redis is out of reach.

        Args:
            end: where the log ends, asked where Redis knows of no floor.
        """
        key = _key(system)
        try:
            if self._unsaid:
                self._say(system)
            position, floor = self._redis.zmscore(key, [str(collection_id), FLOOR])
            if floor is None:
                floor = end()
                self._redis.zadd(key, {FLOOR: floor}, gt=True)
                self._redis.expire(key, KEPT_SECONDS)
        except redis.RedisError:
            return None
        return int(max(position or 0, floor, self._unsaid.get(collection_id, 0)))

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()

    def _say(self, system: int) -> None:
        for collection_id, position in list(self._unsaid.items()):
            try:
                # A double holds it exactly up to 9 PB of log.
                self._redis.zadd(_key(system), {str(collection_id): position}, gt=True)
                self._redis.expire(_key(system), KEPT_SECONDS)
            except redis.RedisError as error:
                log.warning("position not noted", collection_id=collection_id, error=str(error))
                return
            if self._unsaid.get(collection_id) == position:
                self._unsaid.pop(collection_id, None)


def _key(system: int) -> str:
    return f"engram:positions:{system}"
