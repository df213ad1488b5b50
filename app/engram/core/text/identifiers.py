"""Identifiers that order by time: UUIDs of version 7 (RFC 9562, section 5.7)."""

from datetime import UTC, datetime
from uuid import UUID

VERSION = 0x7 << 76
VARIANT = 0b10 << 62
RANDOM_BYTES = 10


def uuid7(milliseconds: int, entropy: bytes) -> UUID:
    """The identifier of what began ``milliseconds`` after 1970 (UTC).

    Args:
        entropy: ten random bytes, of which 74 bits count.

    Raises:
        ValueError: too little entropy, or a time before 1970 or after the year 10889.
    """
    if len(entropy) != RANDOM_BYTES:
        raise ValueError(f"an identifier takes {RANDOM_BYTES} random bytes, not {len(entropy)}")
    if not 0 <= milliseconds < 1 << 48:
        raise ValueError(f"{milliseconds} ms do not fit an identifier")
    drawn = int.from_bytes(entropy)
    first, second = drawn >> 68, drawn & ((1 << 62) - 1)
    return UUID(int=milliseconds << 80 | VERSION | first << 64 | VARIANT | second)


def compute_first_id(moment: datetime) -> UUID:
    """Return the smallest identifier of the moment: earlier ones are below it, and no later one is."""
    return UUID(int=_milliseconds(moment) << 80)


def read_moment(identifier: UUID) -> datetime:
    """Return when an identifier of version 7 was drawn, to the millisecond."""
    return datetime.fromtimestamp((identifier.int >> 80) / 1000.0, UTC)


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000.0)
