"""Rate limits by a token bucket per principal: in Redis for all processes, or local while Redis is away."""

import time
from collections import OrderedDict
from threading import Lock

import structlog

from engram.core.auth import token_bucket
from engram.core.auth.token_bucket import Bucket, TokenGrant
from engram.storage.rate_buckets import Buckets

log = structlog.get_logger(__name__)

AWAY_SECONDS = 5.0
"""How long Redis is left alone once it did not answer."""
MOST_BUCKETS = 10_000
"""Buckets held here; who was heard of longest ago is forgotten, and has a full one again."""


class Rates:
    """Buckets by principal."""

    def __init__(self, buckets: Buckets, rate: float, burst: float) -> None:
        """``rate``: requests a second; ``burst``: at once, at least 1."""
        self.rate = rate
        self.burst = burst
        self._buckets = buckets
        self._lock = Lock()
        self._local_buckets: OrderedDict[str, Bucket] = OrderedDict()
        self._away_until = 0.0

    def take(self, name: str, count: int = 1) -> TokenGrant:
        """Count so many requests of theirs, all or none."""
        now = time.monotonic()
        if now >= self._away_until:
            grant = self._buckets.take(name, self.rate, self.burst, count)
            if grant is not None:
                return token_bucket.token_grant(grant[0], self.rate, self.burst, count, allowed=grant[1])
            self._away_until = now + AWAY_SECONDS
            log.warning("Redis out of reach, rates are counted by each process alone")
        return self._take_locally(name, now, count)

    def _take_locally(self, name: str, now: float, count: int) -> TokenGrant:
        with self._lock:
            bucket, allowed = token_bucket.take(
                self._local_buckets.pop(name, None), now, self.rate, self.burst, count
            )
            self._local_buckets[name] = bucket
            if len(self._local_buckets) > MOST_BUCKETS:
                self._local_buckets.popitem(last=False)
        return token_bucket.token_grant(bucket.tokens, self.rate, self.burst, count, allowed=allowed)
