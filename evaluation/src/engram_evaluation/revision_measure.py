"""Accuracy of four ways to keep facts while sources contradict each other, lie, or are out of date.

Facts with years come from questions such as "Who was the coach of the team from 2018 to 2019?": the page, what is
asked for, the answer, and the years. A stream tells each of them by several sources as it begins, as news do, and
mixes in sources that name somebody else, and old pages that still name, without a date, whoever came before. Four
ways to keep the stream hear the same; each is asked who holds now and who held at each time.

- append: all that was said is kept. The latest word counts.
- prune: an update removes what it contradicts, as published (GRAM, Eq. 2).
- close: an update ends what it contradicts with a date, and the latest word counts. Nothing is more or less sure.
- ours: facts of this service.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import mean

from engram.core.text.temporal import time_constraint
from engram.providers.language import normalise_entity
from engram.services.auth.scope import Scope
from engram.wings.facts.core.claims import ALWAYS
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.parts import facts_of
from engram.wings.facts.services.fact_search import FactPattern
from engram.wings.facts.services.fact_service import StatedFact
from engram_evaluation.dataset import Dataset
from engram_evaluation.harness import EvaluatedServices

SOURCES = 3
"""That tell each fact."""
RATES = (0.0, 0.1, 0.2, 0.3)
"""Shares of sources that lie: each of their statements names somebody else."""
OUTDATED_SHARE = 0.3
"""Share of facts that an old page still tells, without a date, after the next one began."""
WAYS = ("append", "prune", "close", "ours")


@dataclass(frozen=True, slots=True)
class Period:
    """Holder of a role for some days."""

    subject: str
    predicate: str
    object: str
    start: int
    end: int

    @property
    def middle(self) -> int:
        """A day in it."""
        return (self.start + self.end) // 2


@dataclass(frozen=True, slots=True)
class StreamStatement:
    """A statement of the stream; ``start`` is None where it gives no date."""

    period: Period
    object: str
    start: int | None
    source: str


@dataclass(frozen=True, slots=True)
class RevisionShares:
    """Shares of questions, of one way at one rate of lies.

    Attributes:
        current: answered by who holds last.
        as_of: answered by who held in the middle of a period.
        stale: questions for the current holder that are answered by an earlier one.
        bridges: periods whose holder can still be reached from what it held.
    """

    way: str
    lying: float
    current: float
    as_of: float
    stale: float
    bridges: float


def series(dataset: Dataset) -> list[list[Period]]:
    """Return the successive answers of each page and kind of question, in order of time."""
    periods_by_pair: dict[tuple[str, str], dict[int, Period]] = defaultdict(dict)
    for question in dataset.questions:
        days = time_constraint(question.text)
        if days is None or days.start is None or days.end is None or not question.answers or not question.page:
            continue
        start, end = days.start.toordinal(), days.end.toordinal()
        period = Period(question.page, question.type, question.answers[0], start, end)
        periods_by_pair[question.page, question.type].setdefault(start, period)
    ordered = ([periods[start] for start in sorted(periods)] for _, periods in sorted(periods_by_pair.items()))
    kept_periods = [
        [_end_before(a, b) for a, b in pairwise(p) if not _agree(a.object, b.object)] + p[-1:] for p in ordered
    ]
    return [periods for periods in kept_periods if len(periods) > 1]


def _end_before(period: Period, after: Period) -> Period:
    """The period as far as it does not run into the one after: years overlap by the year of the handover."""
    return replace(period, end=min(period.end, after.start))


def stream(period_series: Sequence[Sequence[Period]], lying: float, seed: int) -> list[StreamStatement]:
    """Generate the statements of sources: each period as it begins, old pages after the next began."""
    draw = random.Random(f"facts/{seed}/{lying}")  # noqa: S311 - repeatable, not secret
    objects = sorted({period.object for periods in period_series for period in periods})
    dated_statements: list[tuple[int, float, StreamStatement]] = []
    for number, periods in enumerate(period_series):
        for at, period in enumerate(periods):
            for place in range(SOURCES):
                stated_object = period.object
                if draw.random() < lying:
                    stated_object = draw.choice([one for one in objects if not _agree(one, period.object)])
                source = f"source {number}.{at}.{place}"
                dated_statements.append(
                    (period.start, draw.random(), StreamStatement(period, stated_object, period.start, source))
                )
            if at + 1 < len(periods) and draw.random() < OUTDATED_SHARE:
                after = periods[at + 1].start + 30
                old = StreamStatement(period, period.object, None, f"old page {number}.{at}")
                dated_statements.append((after, draw.random(), old))
    return [one for _, _, one in sorted(dated_statements, key=lambda row: row[:2])]


def revision(
    services: EvaluatedServices, scope: Scope, dataset: Dataset, seeds: Sequence[int], step: Callable[[], None]
) -> list[RevisionShares]:
    """All ways at all rates; means over the seeds."""
    period_series = series(dataset)
    runs_by_arm: dict[tuple[str, float], list[RevisionShares]] = defaultdict(list)
    for lying in RATES:
        for seed in seeds:
            statements = stream(period_series, lying, seed)
            for way in WAYS:
                if way == "ours":
                    result = _measure_engram(
                        services, scope, period_series, statements, f"stream-{seed}-{int(lying * 100)}"
                    )
                else:
                    result = _measure_way(period_series, _build_stored_edges(statements, way), way)
                runs_by_arm[way, lying].append(RevisionShares(way, lying, *result))
            step()
    return [
        RevisionShares(
            way,
            lying,
            *(mean(getattr(one, name) for one in runs) for name in ("current", "as_of", "stale", "bridges")),
        )
        for (way, lying), runs in runs_by_arm.items()
    ]


@dataclass(slots=True)
class _Edge:
    object: str
    start: int
    end: int | None
    place: int


def _build_stored_edges(statements: Sequence[StreamStatement], way: str) -> Mapping[tuple[str, str], list[_Edge]]:
    """Return the facts that a way without beliefs keeps of a stream."""
    kept: dict[tuple[str, str], list[_Edge]] = defaultdict(list)
    for at, one in enumerate(statements):
        edges = kept[one.period.subject, one.period.predicate]
        start = ALWAYS if one.start is None else one.start
        new = _Edge(one.object, start, None, at)
        if way == "prune":
            edges[:] = [edge for edge in edges if _agree(edge.object, one.object)]
        elif way == "close":
            for edge in edges:
                if edge.end is None and not _agree(edge.object, one.object):
                    edge.end = max(edge.start, start) if start > ALWAYS else edge.start
        edges.append(new)
    return kept


def _measure_way(
    period_series: Sequence[Sequence[Period]], stored_edges: Mapping[tuple[str, str], Sequence[_Edge]], way: str
) -> tuple[float, float, float, float]:
    def find_current(subject: str, predicate: str) -> str | None:
        edges = stored_edges[subject, predicate]
        standing = [edge for edge in edges if edge.end is None]
        return max(standing, key=lambda edge: edge.place).object if standing else None

    def find_at_day(subject: str, predicate: str, day: int) -> str | None:
        edges = [e for e in stored_edges[subject, predicate] if e.start <= day and (e.end is None or day < e.end)]
        return max(edges, key=lambda edge: (edge.start, edge.place)).object if edges else None

    def is_bridged(period: Period) -> bool:
        return any(_agree(edge.object, period.object) for edge in stored_edges[period.subject, period.predicate])

    return _shares(period_series, find_current, find_at_day, is_bridged)


def _measure_engram(
    services: EvaluatedServices,
    scope: Scope,
    period_series: Sequence[Sequence[Period]],
    statements: Sequence[StreamStatement],
    graph: str,
) -> tuple[float, float, float, float]:
    for one in statements:
        period = one.period
        triple = Triple(period.subject, period.predicate, one.object[:200], 0, "entity", one.start, None, 1.0)
        facts_of(services).facts.state(scope, [StatedFact(triple)], source=one.source, graph_name=graph)
        if one is statements[0]:
            for predicate in sorted({p.predicate for periods in period_series for p in periods}):
                facts_of(services).predicates.declare(scope, predicate, True, graph)

    def find_current_holder(subject: str, predicate: str, days: tuple[int, int] | None) -> str | None:
        pattern = FactPattern(subject=subject, predicate=predicate, graph=graph, days=days, paths=1)
        rows = list(facts_of(services).fact_search.search(scope, pattern).facts.values())
        return rows[0].object if rows else None

    def is_bridged(period: Period) -> bool:
        pattern = FactPattern(
            subject=period.subject,
            predicate=period.predicate,
            graph=graph,
            paths=50,
            include_closed=True,
            budget=5_000,
        )
        rows = facts_of(services).fact_search.search(scope, pattern).facts.values()
        return any(_agree(row.object, period.object) for row in rows)

    return _shares(
        period_series,
        lambda subject, predicate: find_current_holder(subject, predicate, None),
        lambda subject, predicate, day: find_current_holder(subject, predicate, (day, day + 1)),
        is_bridged,
    )


def _shares(
    period_series: Sequence[Sequence[Period]],
    now: Callable[[str, str], str | None],
    then: Callable[[str, str, int], str | None],
    bridged: Callable[[Period], bool],
) -> tuple[float, float, float, float]:
    current, stale, as_of, bridges = [], [], [], []
    for periods in period_series:
        last = periods[-1]
        answer = now(last.subject, last.predicate)
        right = answer is not None and _agree(answer, last.object)
        current.append(right)
        stale.append(not right and answer is not None and any(_agree(answer, old.object) for old in periods[:-1]))
        as_of += [
            (found := then(period.subject, period.predicate, period.middle)) is not None
            and _agree(found, period.object)
            for period in periods
        ]
        bridges += [bridged(period) for period in periods]
    return mean(current), mean(as_of), mean(stale), mean(bridges)


def _agree(one: str, other: str) -> bool:
    return normalise_entity(one[:200]) == normalise_entity(other[:200])
