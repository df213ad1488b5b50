"""Claims of facts: their objects and days, and the test whether two can both hold.

Days are as ``date.toordinal`` counts; ``ALWAYS`` and ``NEVER`` are open ends. Intervals are half-open.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

ALWAYS, NEVER = 0, 3_652_060
"""Before the first day that a date can name, and after the last."""
HANDOVER_DAYS = 366
"""Two holders of one office may overlap by the year in which one ends and the next begins."""


class Days(NamedTuple):
    """An object that is a date: the days that it covers."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Claim:
    """Claim of a fact with a known subject and predicate; ``object`` is equal where two facts say the same."""

    fact_id: int
    object: Hashable
    valid_from: int = ALWAYS
    valid_to: int = NEVER

    def meets(self, other: "Claim") -> bool:
        """Whether both can hold on one day; of a fact without days, nothing stands against it."""
        return self.valid_from < other.valid_to and other.valid_from < self.valid_to

    def agrees(self, other: "Claim") -> bool:
        """Whether both name the same object: of two dates, the year agrees with a day of it."""
        one, two = self.object, other.object
        if isinstance(one, Days) and isinstance(two, Days):
            inner = Days(max(one.start, two.start), min(one.end, two.end))
            return inner in {one, two}
        return one == two

    def rivals(self, other: "Claim") -> bool:
        """Whether both cannot be true where a subject has one object at a time.

        Not if one may follow the other: it has no end of its own and began earlier, or they share no more than a
        handover. Nor if one has days and the other none, as nothing says that these are the same.
        """
        if self.agrees(other) or not self.meets(other):
            return False
        if self.timeless != other.timeless:
            return False
        first, second = (self, other) if self.valid_from <= other.valid_from else (other, self)
        if first.valid_from < second.valid_from and first.valid_to == NEVER:
            return False
        shared = min(first.valid_to, second.valid_to) - second.valid_from
        shortest = min(claim.valid_to - claim.valid_from for claim in (first, second))
        return self.timeless or shared > min(HANDOVER_DAYS, shortest / 2)

    @property
    def timeless(self) -> bool:
        """Whether no day is known of it."""
        return self.valid_from == ALWAYS and self.valid_to == NEVER
