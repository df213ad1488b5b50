"""Token buckets in Redis, shared by all processes. A bucket that is lost is a full one: losing them is harmless."""

import redis

TIMEOUT_SECONDS = 0.25
"""All that a Redis that hangs may cost a request before it is let through without it."""
# As core.auth.token_bucket.take, by Redis's own clock, in one step.
_TAKE = """
local rate, burst, count = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local clock = redis.call('TIME')
local now = tonumber(clock[1]) + tonumber(clock[2]) / 1000000
local held = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = burst
if held[1] then tokens = math.min(burst, tonumber(held[1]) + math.max(0, now - tonumber(held[2])) * rate) end
local allowed = 0
if tokens >= count then tokens = tokens - count; allowed = 1 end
redis.call('HSET', KEYS[1], 'tokens', string.format('%.6f', tokens), 'at', string.format('%.6f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil(burst / rate * 1000) + 1000)
return {allowed, string.format('%.6f', tokens)}
"""


class Buckets:
    """Buckets by name."""

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(
            url, socket_connect_timeout=TIMEOUT_SECONDS, socket_timeout=TIMEOUT_SECONDS
        )
        self._take = self._redis.register_script(_TAKE)

    def take(self, name: str, rate: float, burst: float, count: int) -> tuple[float, bool] | None:
        """Take tokens, all or none; return what is left, and whether it took them; None without Redis."""
        try:
            allowed, left = self._take(keys=[f"engram:bucket:{name}"], args=[rate, burst, count])
        except redis.RedisError:
            return None
        return float(left), bool(allowed)

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()
