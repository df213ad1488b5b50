"""Assignment of a unit (a user or a session) to an arm of an experiment, by its hash, so nothing is stored.

The hash of the collection, the arms' names and the unit gives a point in [0, 100). Each arm owns a part of that
line as long as its percentage. Percentages are no part of the hash: changing them moves borders, and only units
whose points lie between an old border and a new one change arms. Other names make another experiment, drawn anew.
"""

import hashlib
import json
import math
from collections.abc import Sequence

Segment = tuple[float, float, int]
"""From, to (exclusive), and the position of the arm that owns it."""

ALL_PERCENT = 100.0
ROUNDING = 1e-9


def assign(collection_id: int, names: Sequence[str], percents: Sequence[float], unit: str) -> int | None:
    """The position of the unit's arm; None if it belongs to none.

    Args:
        names: of the arms, in order, no two alike.
        percents: of all units, one per arm, each in [0, 100], together 100 at most; what is left goes to no arm.
        unit: any text; the same always gets the same arm.

    Raises:
        ValueError: the percentages are none.
    """
    at = point(collection_id, names, unit)
    return next((arm for start, end, arm in segments(percents) if start <= at < end), None)


def point(collection_id: int, names: Sequence[str], unit: str) -> float:
    """Return the unit's point in [0, 100):

    the first 53 bits of SHA-256 of ``[collection_id, [names...], unit]`` as ASCII JSON without white space.
    """
    text = json.dumps([collection_id, list(names), unit], separators=(",", ":"))
    bits = int.from_bytes(hashlib.sha256(text.encode("ascii")).digest()[:8], "big") >> 11
    return bits / 2**53 * ALL_PERCENT


def segments(percents: Sequence[float]) -> list[Segment]:
    """The parts of [0, 100) that each arm owns; together they are as long as its percentage.

    Buckets laid end to end would shift all later arms whenever an earlier one grows: from 10/10 to 50/50 every
    unit of the second arm would go over to the first. So each of n arms begins at a home of its own, the i-th at
    i·100/n, and grows there. What it has beyond 100/n it takes from what the others leave free, from the right.
    So with two arms, and with more while none exceeds 100/n, what an arm owns depends on its own percentage alone:
    no unit leaves an arm that does not shrink, none enters one that does not grow.

    Raises:
        ValueError: a percentage is not in [0, 100], or they exceed 100 together.
    """
    if any(not 0 <= percent <= ALL_PERCENT for percent in percents) or math.fsum(percents) > ALL_PERCENT + ROUNDING:
        raise ValueError("percentages must lie in [0, 100], and together not exceed 100")
    homes = [number * ALL_PERCENT / len(percents) for number in range(len(percents))] + [ALL_PERCENT]
    owned: list[Segment] = []
    free: list[tuple[float, float]] = []
    for arm, percent in enumerate(percents):
        border = min(homes[arm] + percent, homes[arm + 1])
        owned.append((homes[arm], border, arm))
        free.append((border, homes[arm + 1]))
    for arm, percent in enumerate(percents):
        missing = percent - (homes[arm + 1] - homes[arm])
        while missing > ROUNDING and free:
            start, end = free.pop()
            width = min(missing, end - start)
            owned.append((end - width, end, arm))
            if end - width > start:
                free.append((start, end - width))
            missing -= width
    return [(start, end, arm) for start, end, arm in owned if end > start]
