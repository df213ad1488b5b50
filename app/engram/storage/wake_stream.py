"""The Redis stream that wakes workers. It carries no truth: what is lost here, the sweep finds in Postgres."""

from collections.abc import Sequence
from typing import Any

import redis
import structlog

from engram.context.errors import ConfigurationError

STREAM = "engram:feedback"
GROUP = "learners"
MAX_LENGTH = 100_000
CLAIM_IDLE_MS = 60_000
# Longer than a worker blocks for wake-ups, and all that a Redis that hangs can cost whoever gives feedback.
SOCKET_TIMEOUT_SECONDS = 3
WORKERS = "engram:workers"
BEAT_SECONDS = 5.0
BEATS_LAST_SECONDS = 30.0
"""A worker that has not beaten for so long counts as gone."""

log = structlog.get_logger(__name__)
Wake = tuple[str, int, int]  # (message, collection, event)


class WakeStream:
    """Feedback wake-ups, delivered to one worker each.

    Raises:
        ConfigurationError: ``url`` is no address of a Redis.
    """

    def __init__(self, url: str, consumer: str = "") -> None:
        try:
            self._redis = redis.Redis.from_url(url, socket_connect_timeout=2, socket_timeout=SOCKET_TIMEOUT_SECONDS)
        except ValueError as error:  # whose words may contain a part of the password
            raise ConfigurationError(
                "REDIS_URL is not an address of a Redis, as redis://localhost:6379/0 is."
            ) from error
        self._consumer = consumer
        self._away = False

    def _note(self, error: redis.RedisError | None) -> None:
        """Tell the log when Redis goes out of reach, and when it answers again: once each."""
        if error is not None and not self._away:
            log.warning("Redis out of reach: verdicts are found by looking, which takes longer", error=str(error))
        elif error is None and self._away:
            log.info("Redis answers again")
        self._away = error is not None

    def wake(self, events: Sequence[tuple[int, int]]) -> bool:
        """Announce events, each with its collection before it.

        False if Redis is out of reach, which delays their application and loses nothing.
        """
        try:
            with self._redis.pipeline(transaction=False) as pipeline:
                for collection_id, event in events:
                    pipeline.xadd(STREAM, {"c": collection_id, "e": event}, maxlen=MAX_LENGTH, approximate=True)
                pipeline.execute()
        except redis.RedisError as error:
            self._note(error)
            return False
        self._note(None)
        return True

    def receive(self, limit: int, block_ms: int) -> list[Wake]:
        """Wait up to ``block_ms`` for wake-ups: another worker's forgotten ones first, then new ones.

        Raises:
            redis.RedisError: Redis is out of reach.
        """
        try:
            claimed = self._redis.xautoclaim(STREAM, GROUP, self._consumer, CLAIM_IDLE_MS, count=limit)[1]
            if claimed:
                return _wakes(claimed)
            replies: Any = self._redis.xreadgroup(GROUP, self._consumer, {STREAM: ">"}, count=limit, block=block_ms)
        except redis.ResponseError as error:
            if "NOGROUP" not in str(error):
                raise
            self._create_group()
            return []
        except redis.RedisError as error:
            self._note(error)
            raise
        self._note(None)
        return [wake for _, messages in replies or [] for wake in _wakes(messages)]

    def acknowledge(self, wakes: Sequence[Wake]) -> None:
        """Acknowledge and remove wake-ups that were acted on."""
        messages = [message for message, _, _ in wakes]
        self._redis.xack(STREAM, GROUP, *messages)
        self._redis.xdel(STREAM, *messages)

    def ping(self) -> bool:
        """Whether Redis answers."""
        try:
            return bool(self._redis.ping())
        except redis.RedisError:
            return False

    def beat(self) -> bool:
        """Say that this consumer lives, by Redis's own clock; False if Redis is out of reach."""
        try:
            now = self._redis.time()[0]
            with self._redis.pipeline(transaction=False) as pipeline:
                pipeline.zadd(WORKERS, {self._consumer: now})
                pipeline.zremrangebyscore(WORKERS, "-inf", now - BEATS_LAST_SECONDS)
                pipeline.execute()
        except redis.RedisError as error:
            self._note(error)
            return False
        return True

    def leave(self) -> None:
        """Say that this consumer works no more; if Redis is out of reach, its beats run out."""
        try:
            self._redis.zrem(WORKERS, self._consumer)
        except redis.RedisError as error:
            self._note(error)

    def workers(self) -> int | None:
        """Count the consumers with a recent heartbeat; None if Redis is out of reach."""
        try:
            now = self._redis.time()[0]
            return int(self._redis.zcount(WORKERS, now - BEATS_LAST_SECONDS, "+inf"))
        except redis.RedisError:
            return None

    def version(self) -> str | None:
        """Version of Redis; None if it is out of reach."""
        try:
            return str(self._redis.info("server")["redis_version"])
        except redis.RedisError:
            return None

    def clock(self) -> float | None:
        """Its time, in seconds; None if it is out of reach."""
        try:
            seconds, microseconds = self._redis.time()
        except redis.RedisError:
            return None
        return float(seconds) + float(microseconds) / 1e6

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()

    def _create_group(self) -> None:
        try:
            self._redis.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
        except redis.ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise


def _wakes(messages: Sequence[tuple[bytes, dict[bytes, bytes]]]) -> list[Wake]:
    return [(name.decode(), int(fields[b"c"]), int(fields[b"e"])) for name, fields in messages if fields]
