"""Tells all processes at once that access keys changed: through Redis, on a channel that keeps nothing.

What is not heard, because Redis is away, costs no more than the time for which keys are remembered.
"""

import threading
from collections.abc import Callable

import redis
import structlog

CHANNEL = "engram:access"
TIMEOUT_SECONDS = 2.0
LISTEN_SECONDS = 1.0
"""For so long a listener waits at a time before it looks whether it is to end; and before it tries again."""
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

        def follow() -> None:
            while not over.is_set():
                try:
                    with self._redis.pubsub(  # type: ignore[no-untyped-call]
                        ignore_subscribe_messages=True
                    ) as channel:
                        channel.subscribe(CHANNEL)
                        on_change()
                        while not over.is_set():
                            if channel.get_message(timeout=LISTEN_SECONDS) is not None:
                                on_change()
                except redis.RedisError:
                    over.wait(LISTEN_SECONDS)

        thread = threading.Thread(target=follow, name="access notices", daemon=True)
        thread.start()

        def stop() -> None:
            over.set()
            thread.join()

        return stop

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()
