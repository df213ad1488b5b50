"""Bounded exploration: now and then an answer's last positions go to passages that no answer would show otherwise.

A verdict can only speak of what it knows of, so a passage that always ranks too low never gets evidence for or
against it. A known share of the answers makes room for some, chosen by chance, so that the chance is known too.
"""

import hashlib
import json

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def entropy(*parts: int | str) -> int:
    """A number of 256 bits that seeds all draws of one query: SHA-256 of the parts, a JSON array in ASCII."""
    text = json.dumps(parts, separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode("ascii")).digest(), "big")


def explores(share: float, drawn_from: int) -> bool:
    """Whether a query explores, with probability ``share``.

    Args:
        share: in [0, 1].
        drawn_from: the query's ``entropy``.

    Raises:
        ValueError: the share is out of its range.
    """
    if not 0 <= share <= 1:
        raise ValueError("the share must lie in [0, 1]")
    return bool(np.random.default_rng([drawn_from, 0]).random() < share)


def weights(evidence: NDArray[np.int64]) -> Floats:
    """Return unnormalised probabilities of drawing each candidate, (n,): 1 / ((1 + evidence) · rank).

    What was never touched comes before what was, in inverse proportion to what is known; among equals, what ranks
    higher, as it is the likelier to help. Every weight is above 0: anything can be drawn, whatever is known.

    Args:
        evidence: (n,), at least 0: how many verdicts and answers touched each, in order of rank below the cut.

    Raises:
        ValueError: a count is below 0.
    """
    if (evidence < 0).any():
        raise ValueError("evidence must be at least 0")
    ranks = np.arange(1, len(evidence) + 1, dtype=np.float64)
    result: Floats = 1.0 / ((1.0 + evidence) * ranks)
    return result


def draw(chances: Floats, slots: int, drawn_from: int) -> list[int]:
    """Positions of the drawn candidates, highest rank first: one after the other by ``chances``, none twice.

    Args:
        chances: (n,), above 0.
        slots: how many at most.
        drawn_from: the query's ``entropy``; the same gives the same draw.
    """
    count = min(max(slots, 0), len(chances))
    if not count:
        return []
    generator = np.random.default_rng([drawn_from, 1])
    drawn = generator.choice(len(chances), size=count, replace=False, p=chances / chances.sum())
    return sorted(drawn.tolist())


def room(slots: int, top_k: int, shown_count: int) -> int:
    """Count the positions that a draw may take: never the first, and none of an answer that is not full.

    Args:
        slots: of the setting.
        top_k: passages that the query wants.
        shown_count: passages that rank above the cut.
    """
    return 0 if shown_count < top_k else max(min(slots, top_k - 1), 0)
