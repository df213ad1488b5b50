"""Passage keys that evolve (ERM, Section 4): which expansions earn a place in a key, and what the key becomes.

A passage's base key never changes. What verdicts validated stands beside it as a bounded memory of expansion units
with scores, and the evolved key is a function of the two alone: the same memory gives the same key, however often
and in whatever order it was composed.

Two readings of the paper are ours. Under an inner product the gain of Eq. 5 is f(q)·f(e), the same for every
passage, so gains are cosines on the composed key. And gains are taken on the base key, not on the key as it stands:
then a passage's scores are a plain sum over verdicts, which no order changes and from which one can be taken out.

Inner products are summed row by row, not by a matrix product, whose last bits depend on what else is multiplied: a
replay takes other passages and units together than learning did.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class KeyRules:
    """Rules by which passage keys evolve.

    Attributes:
        strength: λ in (0, 1), the length of what is added to a base key of length 1.
        term_strength: how often a unit's terms are added to the lexical key, as a share of the passage's own
            length: with 0.5, two words of a passage weigh as much as one word of its expansions.
        units: x, units that compose a key (Eq. 8).
        capacity: units that a passage's expansion memory holds, at least ``units``.

    Raises:
        ValueError: a value is out of its range.
    """

    strength: float
    term_strength: float
    units: int
    capacity: int

    def __post_init__(self) -> None:
        if not 0 < self.strength < 1:
            raise ValueError("strength must lie in (0, 1)")
        if self.term_strength < 0:
            raise ValueError("term_strength must not be negative")
        if not 1 <= self.units <= self.capacity:
            raise ValueError("units must be at least 1 and at most capacity")


@dataclass(frozen=True, slots=True)
class Saturation:
    """Number of batches without improvement (ERM, Eqs. 9-10).

    Attributes:
        best: highest alignment gain of any batch so far, >= 0.
        stale: batches in a row that did not exceed the best one's margin.
    """

    best: float = 0.0
    stale: int = 0

    def update(self, gain: float, margin: float) -> "Saturation":
        """The state after a batch whose highest gain (Eq. 9) is ``gain``.

        Args:
            margin: ρ in [0, 1), the share by which a batch may stay behind the best and still count (Eq. 10).
        """
        behind = self.best > 0 and gain <= (1.0 - margin) * self.best
        return Saturation(max(self.best, gain), self.stale + 1 if behind else 0)


def gains(query: Floats, bases: Floats, units: Floats, strength: float) -> NDArray[np.float64]:
    """Δ of Eq. 5: how much nearer each key comes to the question when one unit is added to it.

    Args:
        query: unit length, (d,).
        bases: base keys, unit length, (n, d).
        units: unit length, (m, d).
        strength: λ in (0, 1).

    Returns:
        cos(q, k + λ e) - cos(q, k), (n, m).
    """
    keys, added, asked = (np.ascontiguousarray(values, dtype=np.float64) for values in (bases, units, query))
    near = _compute_inner_products(keys, asked)
    along = np.stack(
        [_compute_inner_products(keys, unit) for unit in added], axis=1
    )  # one by one: (n, m, d) would not fit
    lengths = np.sqrt(1.0 + strength**2 + 2.0 * strength * along)
    return np.asarray(
        (near[:, None] + strength * _compute_inner_products(added, asked)[None, :]) / lengths - near[:, None]
    )


def attribution(gain: Floats) -> NDArray[np.float64]:
    """w of Eq. 6: the softmax within the query over the units that help, 0 for those that do not.

    Args:
        gain: Δ, (n, m).

    Returns:
        (n, m), each row adding up to 1, or to 0 where no unit has Δ > 0.
    """
    gained = gain > 0
    raised = np.where(gained, np.exp(gain), 0.0)
    total = raised.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(raised, total, out=np.zeros_like(raised), where=total > 0))


def compose(base: Floats, units: Floats, scores: Floats, strength: float) -> NDArray[np.float32]:
    """The evolved key: the base and λ times the direction in which its best units point (Eq. 8).

    Units count with their share of the scores. What is added has length λ < 1 whatever their number, so the key
    turns by at most arcsin λ, and moves by at most sqrt(2 - 2 sqrt(1 - λ²)): ``compute_displacement_bound``.

    Args:
        base: unit length, (d,).
        units: unit length, (x, d), x >= 1.
        scores: > 0, (x,).
        strength: λ in (0, 1).

    Returns:
        Unit length, (d,); the base itself where the units cancel out.
    """
    weights = np.asarray(scores, dtype=np.float64)
    direction = ((weights / weights.sum())[:, None] * np.asarray(units, dtype=np.float64)).sum(axis=0)
    length = float(np.sqrt(_compute_inner_products(direction, direction)))
    if length < 1e-9:
        return np.asarray(base, dtype=np.float32)
    return _unit(np.asarray(base, dtype=np.float64) + strength * direction / length).astype(np.float32)


def compute_displacement_bound(strength: float) -> float:
    """Return the largest distance of an evolved key from its base, between unit vectors."""
    return float(np.sqrt(2.0 - 2.0 * np.sqrt(1.0 - strength**2)))


def compose_terms(
    length: float, units: Sequence[Mapping[str, float]], scores: Sequence[float], strength: float
) -> dict[str, float]:
    """Compute the term frequencies that a passage's best units add.

    Args:
        length: of the passage, in terms, >= 0.
        units: term -> how often the unit has it; a unit counts with its share of the scores, whatever its length.
        scores: > 0, one a unit.
        strength: of all that is added, as a share of ``length``.

    Returns:
        Term -> increment > 0; the increments add up to strength times length.
    """
    total = sum(scores)
    added: dict[str, float] = {}
    for frequencies, score in zip(units, scores, strict=True):
        size = sum(frequencies.values())
        for term, frequency in frequencies.items():
            share = strength * length * score / total * frequency / size
            added[term] = added.get(term, 0.0) + share
    return {term: increment for term, increment in added.items() if increment > 0}


def _compute_inner_products(one: Floats, other: Floats) -> NDArray[np.float64]:
    return np.asarray((one * other).sum(axis=-1), dtype=np.float64)


def _unit(vector: Floats) -> Floats:
    return vector / np.sqrt(_compute_inner_products(vector, vector))
