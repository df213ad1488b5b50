"""Learning from extracted facts alone which predicates are functional."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import inf

from engram.wings.facts.core.functional_predicates import OneAtATime

SLACK_DAYS = 366
"""Days that two may share and follow each other all the same: "until 1995" and "from 1995" share a year."""
SINGLE_SENTENCE_WEIGHT = 0.25
"""What a subject counts of which one sentence told: another might have named another object."""


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
