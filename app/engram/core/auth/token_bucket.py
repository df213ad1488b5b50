"""A token bucket: ``rate`` tokens a second flow in, up to ``burst``, and requests take some."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket as it was at a moment.

    Attributes:
        tokens: in [0, burst].
        at: seconds, by any clock that does not go back; if it does, nothing flows in meanwhile.
    """

    tokens: float
    at: float


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """Result of taking tokens.

    Attributes:
        allowed: whether there were as many.
        remaining: whole tokens that are left.
        retry_seconds: until there are as many again; 0 if there are.
        full_seconds: until the bucket is full again.
    """

    allowed: bool
    remaining: int
    retry_seconds: float
    full_seconds: float


def take(bucket: Bucket | None, now: float, rate: float, burst: float, count: int = 1) -> tuple[Bucket, bool]:
    """Take ``count`` tokens, all or none; return the bucket with what flowed in meanwhile, and whether it had them.

    Args:
        bucket: None for one that nobody took from yet, which is full.
        rate: > 0, tokens a second.
        burst: >= 1, tokens.

    Raises:
        ValueError: rate or burst is out of range.
    """
    if rate <= 0 or burst < 1:
        raise ValueError("a bucket needs a rate above 0 and room for a token")
    tokens = burst if bucket is None else min(burst, bucket.tokens + max(0.0, now - bucket.at) * rate)
    allowed = tokens >= count
    return Bucket(tokens - count if allowed else tokens, now), allowed


def token_grant(tokens: float, rate: float, burst: float, count: int = 1, *, allowed: bool) -> TokenGrant:
    """Make the result of taking ``count`` tokens for a bucket with this many left."""
    return TokenGrant(allowed, int(tokens), max(0.0, count - tokens) / rate, max(0.0, burst - tokens) / rate)
