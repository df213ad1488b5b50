"""Functional predicates: which have one object per subject at a time, and which facts therefore exclude each other.

Somebody has one date of birth and many films. How often a predicate has one object per subject at a time is a
Beta belief (Bernoulli trials, one per subject that the predicate is said of): it starts at Beta(1, 1), so a
predicate that was met twice is not called functional. The counts are sums over subjects: their order does not
matter, and what a subject added can be taken back.
"""

from dataclasses import dataclass
from math import sqrt

FUNCTIONAL_FROM = 0.85
"""A predicate is functional where the lower bound of its belief lies above this (``docs/facts.md``)."""
FROM_THE_START = frozenset({"based in"})
"""Predicates that are functional until somebody declares otherwise: "moved to" replaces "is based in"."""
DEVIATIONS = 1.645
"""Standard deviations below the mean at which the lower bound lies: 95% of a normal belief is above."""


@dataclass(frozen=True, slots=True)
class OneAtATime:
    """Belief that a predicate has one object per subject at a time, by subjects that it was said of.

    Attributes:
        single: subjects that had one object at any time, at least 0.
        several: subjects that had more at one time, at least 0.
    """

    single: float = 0.0
    several: float = 0.0

    @property
    def mean(self) -> float:
        """(1 + single) / (2 + single + several), in (0, 1)."""
        return (1.0 + self.single) / (2.0 + self.single + self.several)

    @property
    def lower(self) -> float:
        """Return the lower bound, in (-1, 1): the mean less ``DEVIATIONS`` standard deviations."""
        return self.mean - DEVIATIONS * sqrt(self.mean * (1.0 - self.mean) / (3.0 + self.single + self.several))

    @property
    def is_functional(self) -> bool:
        """Whether that is above ``FUNCTIONAL_FROM``."""
        return self.lower > FUNCTIONAL_FROM

    def __add__(self, other: "OneAtATime") -> "OneAtATime":
        return OneAtATime(self.single + other.single, self.several + other.several)

    def __sub__(self, other: "OneAtATime") -> "OneAtATime":
        """Take back what was added.

        Raises:
            ValueError: it was not.
        """
        single, several = self.single - other.single, self.several - other.several
        if single < 0 or several < 0:
            raise ValueError("more is taken back than was added")
        return OneAtATime(single, several)
