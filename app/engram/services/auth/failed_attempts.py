"""Bounds on failed authentications: a token bucket for each address, in this process."""

import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from engram.context.errors import TooManyRequestsError
from engram.core.auth import token_bucket
from engram.core.auth.token_bucket import Bucket

RATE, BURST = 1.0, 50.0
"""Failures a second, and at once, after which an address is refused without a look at what it brings."""
MOST_ADDRESSES = 10_000
"""Addresses; whoever failed longest ago is forgotten."""


class FailedAttempts:
    """Counts failed authentications by address."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def check(self, address: str) -> None:
        """Let an address try.

        Raises:
            TooManyRequestsError: it failed too often.
        """
        with self._lock:
            bucket = self._buckets.get(address)
            if bucket is None:
                return
            tokens = min(BURST, bucket.tokens + max(0.0, self._clock() - bucket.at) * RATE)
        if tokens < 1:
            raise TooManyRequestsError(
                "Too many failed authentications came from this address.", max(1.0, (1 - tokens) / RATE)
            )

    def count(self, address: str) -> None:
        """Count a failure of the address."""
        with self._lock:
            self._buckets[address], _ = token_bucket.take(
                self._buckets.pop(address, None), self._clock(), RATE, BURST
            )
            if len(self._buckets) > MOST_ADDRESSES:
                self._buckets.popitem(last=False)
