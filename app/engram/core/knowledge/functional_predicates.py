"""Functional predicates: which have one object per subject at a time, and which facts therefore exclude each other.

Somebody has one date of birth and many films. How often a predicate has one object per subject at a time is a
Beta belief (Bernoulli trials, one per subject that the predicate is said of): it starts at Beta(1, 1), so a
predicate that was met twice is not called functional. The counts are sums over subjects: their order does not
matter, and what a subject added can be taken back.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt

FUNCTIONAL_FROM = 0.85
"""A predicate is functional where the lower bound of its belief lies above this (``docs/fact-extraction.md``)."""
SLACK_DAYS = 366
"""Days that two may share and follow each other all the same: "until 1995" and "from 1995" share a year."""
SINGLE_SENTENCE_WEIGHT = 0.25
"""What a subject counts of which one sentence told: another might have named another object."""
FROM_THE_START = frozenset({"based in"})
"""Predicates that are functional until somebody declares otherwise: "moved to" replaces "is based in"."""
DEVIATIONS = 1.645
"""Standard deviations below the mean at which the lower bound lies: 95% of a normal belief is above."""


@dataclass(frozen=True, slots=True)
class ObjectPeriod:
    """An object with the days for which it is said to hold, ``end`` exclusive; None is an open end.

    Attributes:
        object: equal for what is the same thing.
        source: the sentence that says so.
    """

    object: Hashable
    start: int | None = None
    end: int | None = None
    source: Hashable = None


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


def observe_holdings(holdings: Sequence[ObjectPeriod]) -> OneAtATime:
    """Return the trial of one subject's objects of one predicate; none if there are no objects."""
    if not holdings:
        return OneAtATime()
    weight = 1.0 if len({holding.source for holding in holdings}) > 1 else SINGLE_SENTENCE_WEIGHT
    return OneAtATime(several=weight) if group_competing(holdings) else OneAtATime(single=weight)


def learn(objects_by_predicate: Iterable[tuple[str, Sequence[ObjectPeriod]]]) -> dict[str, OneAtATime]:
    """The belief of each predicate; ``objects_by_predicate`` has an entry per subject and predicate."""
    beliefs: dict[str, OneAtATime] = {}
    for predicate, holdings in objects_by_predicate:
        beliefs[predicate] = beliefs.get(predicate, OneAtATime()) + observe_holdings(holdings)
    return beliefs


def is_functional(
    predicate: str, beliefs: Mapping[str, OneAtATime], declared: Mapping[str, bool] | None = None
) -> bool:
    """Whether a predicate is functional: as declared, else as learned; not, if nothing is known of it."""
    if declared is not None and predicate in declared:
        return declared[predicate]
    return predicate in beliefs and beliefs[predicate].is_functional


def group_competing(holdings: Sequence[ObjectPeriod]) -> list[list[int]]:
    """Return groups of overlapping periods that name more than one object, as places in ``holdings``.

    Periods overlap if they share more than ``SLACK_DAYS``; overlap chains. A fact without days holds always. Groups
    come in order of their first day. Takes O(n log n).

    Raises:
        ValueError: an interval ends before it starts.
    """
    spans = [_span(holding) for holding in holdings]
    order = sorted(range(len(holdings)), key=lambda place: (spans[place][0], place))
    groups: list[list[int]] = []
    current: list[int] = []
    until = -inf
    for place in order:
        start, end = spans[place]
        if current and start >= until:
            groups.append(current)
            current, until = [], -inf
        current.append(place)
        until = max(until, end)
    if current:
        groups.append(current)
    return [sorted(group) for group in groups if len({holdings[place].object for place in group}) > 1]


def _span(holding: ObjectPeriod) -> tuple[float, float]:
    start = -inf if holding.start is None else float(holding.start)
    end = inf if holding.end is None else float(holding.end)
    if end <= start:
        raise ValueError(f"the interval of {holding.object!r} ends before it starts")
    return start, max(start + 1.0, end - SLACK_DAYS)
