"""Effect of a verdict's expansions on passage keys, as a receipt shows it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CreditRow:
    """Credit of a verdict for one (passage, unit); the passage by its external id."""

    passage_id: str
    unit_id: int
    gain: float
    weight: float


@dataclass(frozen=True, slots=True)
class KeyEffect:
    """Effect of a verdict's expansions on passage keys.

    Attributes:
        status: "taken in" (by ``generation``), "waiting", or "rolled back" with its generation; None for a verdict
            whose expansions were not validated.
        credits: the best of its ``credit_count`` credits.
    """

    gate: str
    gain: float
    generation: int | None
    status: str | None
    credits: Sequence[CreditRow]
    credit_count: int
