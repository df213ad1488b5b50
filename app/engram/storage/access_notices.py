"""Tells all processes at once that access keys changed: through Redis, on a channel that keeps nothing.

What is not heard, because Redis is away, costs no more than the time for which keys are remembered.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from uuid import uuid4

import redis
import structlog

CHANNEL = "engram:access"
TIMEOUT_SECONDS = 2.0
LISTEN_SECONDS = 1.0
"""A listener that cannot be told to end looks for it this often; it also waits this long before it tries again."""
log = structlog.get_logger(__name__)


class Notices:
    """Notices that what was remembered of access keys and tenants is to be looked up anew."""

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(
            url, socket_connect_timeout=TIMEOUT_SECONDS, socket_timeout=TIMEOUT_SECONDS
        )

    def tell(self) -> None:
        """Tell whoever listens."""
        try:
            self._redis.publish(CHANNEL, b"")
        except redis.RedisError as error:
            log.warning("change of access keys not told; it counts when they are looked up next", error=str(error))

    def listen(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call ``on_change`` from a thread at each notice and after a gap; return a function that ends it."""
        over = threading.Event()
        ending = f"{CHANNEL}:end:{uuid4().hex}"  # a channel of this listener, so that its end wakes no other

        def follow() -> None:
            while not over.is_set():
                try:
                    with self._redis.pubsub(  # type: ignore[no-untyped-call]
                        ignore_subscribe_messages=True
                    ) as channel:
                        channel.subscribe(CHANNEL, ending)
                        on_change()
                        while not over.is_set():
                            message = channel.get_message(timeout=LISTEN_SECONDS)
                            if message is not None and not over.is_set():
                                on_change()
                except redis.RedisError:
                    over.wait(LISTEN_SECONDS)

        thread = threading.Thread(target=follow, name="access notices", daemon=True)
        thread.start()

        def stop() -> None:
            over.set()
            with suppress(redis.RedisError):  # Redis is away: the listener looks by itself
                self._redis.publish(ending, b"")
            thread.join()

        return stop

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()
