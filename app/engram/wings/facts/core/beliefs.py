"""Beliefs of facts: the one step by which every part of the service computes them.

A fact says that a subject has an object under a predicate, for some days. What is believed of it is a mean in
[0, 1] and its perplexity, moved by the filter of GAM-RAG (``kalman``, Eqs. 10-13) exactly as the support of a
sentence is: each thing said of it is an observation, 1 for it and 0 against it. What is said of one fact bears on
others:

- a source or a confirmation speaks for each fact of the same object that can hold at the same time, and, where the
  predicate is functional, against each fact of another object that would have to hold at the same time;
- a word against a fact speaks against those of the same object that can hold at the same time, and for nothing.

Facts are closed, never removed: by a word that says so, or, where the predicate is functional, by a believed fact
of another object that begins later. Ingest, revisions, revocations and verifications all call ``replay``, which
goes by what was said in its order; no fact depends on another group, so groups are replayed together or one by one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

import numpy as np

from engram.core.learning.caps import UNTOUCHED, GainBudget, JudgeStatements, add_statement, compute_allowed_gain
from engram.core.learning.judge_standing import NEWCOMERS
from engram.core.learning.kalman import update_supports
from engram.wings.facts.core.claims import ALWAYS, NEVER, Claim

BEGINNING = 0.5
"""What is believed of a fact before anything is said: nothing either way, at perplexity 1."""
LEAST_BELIEF = 0.49
"""A fact believed less is doubted: it ends no other. Where as much speaks for as against it, it is not."""
SOURCE_NOISE = 2.0
"""R of a source, for and against. From 0.5 at perplexity 1, what n sources state and m go against is believed
(n + 1) / (n + m + 2), but for the process noise: Laplace's rule. A judge has looked, and counts for more."""

SOURCE, CONFIRM, CONTRADICT, SUPERSEDE, CLOSE = "source", "confirm", "contradict", "supersede", "close"
Kind = Literal["source", "confirm", "contradict", "supersede", "close"]
SUPERSEDED = "superseded"
"""Why a fact is closed that a later one of the same subject and predicate ended."""
ENDED = "ended"
"""Why a fact without an end of its own is closed when another says when the same ended."""
UNSAID = "no longer said"
"""Why a fact is closed all of whose sources say something else by now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactStatement:
    """One thing said of a fact.

    Attributes:
        sequence: its place among all that was said in the collection.
        who: a judge, ``NEWCOMERS`` for a new one, or a source; a source that repeats itself says nothing new.
        day, at: when, the day in UTC as 2026-05-01.
        positive, negative: observation noise R > 0 of what it supports and of what it speaks against.
        process_noise: Q, in (0, 1).
        share, contested_share: of a judge, how much it may close of one belief in a day: see ``caps``.
        other: of ``supersede``, the fact that comes after.
        until: the first day on which the fact no longer holds, if a word that closes it says so.
        reason: of ``close``.
        withdrawn, withdrawn_at: of a source that says so no more, the place of what tells that, and when.
    """

    sequence: int
    fact_id: int
    kind: Kind
    who: str
    day: str
    at: datetime
    positive: float
    negative: float
    process_noise: float
    share: float = 1.0
    contested_share: float = 1.0
    other: int | None = None
    until: int | None = None
    reason: str | None = None
    withdrawn: int | None = None
    withdrawn_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Facts that bear on each other, all of one subject and predicate, and what was said of them, in order."""

    claims: Sequence[Claim]
    words: Sequence[FactStatement]
    functional: bool


@dataclass(slots=True)
class Fact:
    """Belief of a fact.

    Attributes:
        held_until: the first day on which it no longer holds, by itself or because something ended it.
        closed_at, closed_reason: since when and why it is no longer held to go on.
        superseded_by: the fact that ended it.
    """

    fact_id: int
    belief: float = BEGINNING
    perplexity: float = 1.0
    observations: int = 0
    held_until: int = NEVER
    closed_at: datetime | None = None
    closed_reason: str | None = None
    superseded_by: int | None = None


@dataclass(frozen=True, slots=True)
class BeliefMove:
    """Effect of one observation on one fact: a row of the audit."""

    fact_id: int
    sequence: int
    target: int
    observation_noise: float
    gain: float
    residual: float
    perplexity_before: float
    perplexity_after: float
    belief: float


@dataclass(slots=True)
class _FactStanding:
    """A fact while its group is replayed, and what judges and sources said so far."""

    fact: Fact
    gain_budget: GainBudget = UNTOUCHED
    words: JudgeStatements = ()
    sources: set[tuple[str, int]] = field(default_factory=set)


def replay(groups: Iterable[Group]) -> tuple[dict[int, Fact], list[BeliefMove]]:
    """Return the beliefs of the groups' facts by id, and the moves of each in order.

    What is withdrawn counts until it is: from there on all is believed as if it had never been said, and a move
    says how far that took each fact. A fact that all its sources withdrew is closed.

    Raises:
        ValueError: a noise is out of its range.
    """
    periods_by_group = [(group, _periods(group)) for group in groups]
    flat = [period for _, periods in periods_by_group for period in periods]
    standings_by_period, moved = _observe([period.group for period in flat])
    ended = iter(zip(flat, standings_by_period, moved, strict=True))
    facts: dict[int, Fact] = {}
    moves: list[BeliefMove] = []
    for group, periods in periods_by_group:
        before: Mapping[int, _FactStanding] = {}
        for period, standings, steps in (next(ended) for _ in periods):
            if period.begins:
                moves += _turns(before, standings, period.after)
            else:
                moves += [move for move in steps if move.sequence > period.after]
                before = standings
        believed = {fact: standing.fact for fact, standing in before.items()}
        _close(periods[-1].group, believed)
        _leave(group, believed)
        facts |= believed
    moves.sort(key=lambda move: (move.sequence, move.fact_id))
    return facts, moves


@dataclass(frozen=True, slots=True)
class _Period:
    """A group by what counted in a time between two withdrawals; ``begins``: no further than to its beginning."""

    group: Group
    after: int
    begins: bool = False


def _periods(group: Group) -> list[_Period]:
    turns = sorted({word.withdrawn for word in group.words if word.withdrawn is not None})
    if not turns:
        return [_Period(group, -1)]
    periods = []
    for after, until in zip([-1, *turns], [*turns, None], strict=True):
        counted = [word for word in group.words if word.withdrawn is None or word.withdrawn > after]
        if after >= 0:
            begun = [word for word in counted if word.sequence < after]
            periods.append(_Period(replace(group, words=begun), after, begins=True))
        counted = [word for word in counted if until is None or word.sequence < until]
        periods.append(_Period(replace(group, words=counted), after))
    return periods


def _turns(
    before: Mapping[int, "_FactStanding"], after: Mapping[int, "_FactStanding"], sequence: int
) -> list[BeliefMove]:
    """Return a withdrawal's moves: the belief without it replaces the belief, like an observation without noise."""
    turns = []
    for fact_id, standing in after.items():
        was, fact = before[fact_id].fact, standing.fact
        if (was.belief, was.perplexity) != (fact.belief, fact.perplexity):
            change = fact.belief - was.belief
            up = int(change > 0)
            turns.append(
                BeliefMove(fact_id, sequence, up, 0.0, 1.0, change, was.perplexity, fact.perplexity, fact.belief)
            )
    return turns


def _leave(group: Group, facts: Mapping[int, Fact]) -> None:
    """Close what no source says any more; what was over before stays over as it was."""
    left: dict[int, datetime] = {}
    sourced = set()
    for word in group.words:
        if word.kind == SOURCE and word.withdrawn_at is None:
            sourced.add(word.fact_id)
        elif word.kind == SOURCE and word.withdrawn_at is not None:
            left[word.fact_id] = max(left.get(word.fact_id, word.withdrawn_at), word.withdrawn_at)
    for fact_id, moment in left.items():
        fact = facts.get(fact_id)
        if fact is not None and fact_id not in sourced and fact.closed_at is None:
            fact.closed_at, fact.closed_reason = moment, UNSAID


def _observe(groups: Sequence[Group]) -> tuple[list[dict[int, "_FactStanding"]], list[list[BeliefMove]]]:
    """Return each group's facts after all its observations, and their moves, by group.

    All first words are applied together, then all second ones: no row of the arithmetic depends on another.
    """
    standings_by_group = [
        {claim.fact_id: _FactStanding(Fact(claim.fact_id, held_until=claim.valid_to)) for claim in group.claims}
        for group in groups
    ]
    moves: list[list[BeliefMove]] = [[] for _ in groups]
    for at in range(max((len(group.words) for group in groups), default=0)):
        rounds: dict[float, list[tuple[int, _FactStanding, FactStatement, int]]] = {}
        for place, (group, facts) in enumerate(zip(groups, standings_by_group, strict=True)):
            if at < len(group.words):
                word = group.words[at]
                rows = [(place, facts[fact], word, y) for fact, y in _targets(group, word).items()]
                rounds.setdefault(word.process_noise, []).extend(rows)
        for process_noise, rows in rounds.items():
            for (place, *_), move in zip(rows, _step([row[1:] for row in rows], process_noise), strict=True):
                moves[place].append(move)
    return standings_by_group, moves


def _targets(group: Group, word: FactStatement) -> dict[int, int]:
    """Fact -> y of the facts that a word speaks of."""
    named = next((claim for claim in group.claims if claim.fact_id == word.fact_id), None)
    if named is None or word.kind in {SUPERSEDE, CLOSE}:
        return {}
    target = int(word.kind != CONTRADICT)
    targets = {}
    for claim in group.claims:
        if claim.agrees(named) and claim.meets(named):
            targets[claim.fact_id] = target
        elif target and group.functional and claim.rivals(named):
            targets[claim.fact_id] = 0
    return targets


def _step(rows: Sequence[tuple[_FactStanding, FactStatement, int]], process_noise: float) -> list[BeliefMove]:
    """Move each fact by what is said of it (Eqs. 11-13 with the fact itself as the direction)."""
    if not rows:
        return []
    noises = [word.positive if y else word.negative for _, word, y in rows]
    before = [standing.fact.perplexity for standing, _, _ in rows]
    update = update_supports(
        np.array([standing.fact.belief for standing, _, _ in rows]),
        np.array(before),
        np.array([float(y) for _, _, y in rows]),
        np.array(noises),
        process_noise,
        most=np.array([_compute_largest_gain(standing, word, y) for standing, word, y in rows]),
    )
    columns = (update.supports, update.perplexities, update.gains, update.residuals)
    moves = []
    numbers = zip(*(column.tolist() for column in columns), strict=True)
    for (standing, word, y), noise, was, (belief, perplexity, gain, residual) in zip(
        rows, noises, before, numbers, strict=True
    ):
        fact = standing.fact
        if word.kind == SOURCE:
            standing.sources.add((word.who, y))
        else:
            standing.gain_budget = standing.gain_budget.start_day(word.day).spend(word.who, gain)
            standing.words = add_statement(standing.words, word.who, y)
        fact.belief, fact.perplexity, fact.observations = belief, perplexity, fact.observations + 1
        moves.append(
            BeliefMove(fact.fact_id, word.sequence, y, noise, gain, residual, was, perplexity, belief),
        )
    return moves


def _compute_largest_gain(standing: _FactStanding, word: FactStatement, target: int) -> float:
    """The largest gain that is allowed: nothing for a source that repeats itself, a judge's caps for a judge."""
    if word.kind == SOURCE:
        return 0.0 if (word.who, target) in standing.sources else 1.0
    return compute_allowed_gain(
        standing.gain_budget.start_day(word.day),
        standing.words,
        word.who,
        target,
        share=word.share,
        contested_share=word.contested_share,
    )


def _close(group: Group, facts: Mapping[int, Fact]) -> None:
    """Close what is said to be over, and what a believed later fact of a functional predicate ended.

    A new judge closes nothing: there is no way to close a little.
    """
    begun: dict[int, datetime] = {}
    for word in group.words:
        fact = facts.get(word.fact_id)
        if word.kind == SOURCE:
            begun.setdefault(word.fact_id, word.at)
        elif word.who == NEWCOMERS:
            continue
        elif fact is not None and word.kind in {SUPERSEDE, CLOSE} and fact.closed_at is None:
            if word.until is not None:
                fact.held_until = word.until
            fact.closed_at, fact.superseded_by = word.at, word.other
            fact.closed_reason = SUPERSEDED if word.kind == SUPERSEDE else word.reason
    begun_claims = [claim for claim in group.claims if claim.fact_id in begun]
    _end(begun_claims, facts, begun)
    if group.functional:
        order = {word.fact_id: word.sequence for word in reversed(group.words) if word.kind == SOURCE}
        _supersede(begun_claims, facts, begun)
        _replace(begun_claims, facts, begun, order)
        _end_timeless(begun_claims, facts, begun)


def _end(claims: Sequence[Claim], facts: Mapping[int, Fact], begun: Mapping[int, datetime]) -> None:
    """End a fact without an end of its own when a believed one of the same object ends ("resigned in 2017").

    A fact with a first day ends at the first end after it. A fact without days ends at the last one, unless the
    same
    began once more after that.
    """
    ends = [claim for claim in claims if claim.valid_to != NEVER and facts[claim.fact_id].belief >= LEAST_BELIEF]
    for claim in claims:
        fact = facts[claim.fact_id]
        if fact.closed_at is not None or claim.valid_to != NEVER:
            continue
        agreeing_ends = [other for other in ends if other.agrees(claim) and other.valid_to > claim.valid_from]
        if not agreeing_ends:
            continue
        choose = max if claim.timeless else min
        end = choose(agreeing_ends, key=lambda other: (other.valid_to, other.fact_id))
        again = any(other.valid_from >= end.valid_to and other.agrees(claim) for other in claims)
        if claim.timeless and again:
            continue
        fact.held_until = end.valid_to
        fact.closed_at = max(begun[claim.fact_id], begun[end.fact_id])
        fact.closed_reason = ENDED


def _replace(
    claims: Sequence[Claim], facts: Mapping[int, Fact], begun: Mapping[int, datetime], order: Mapping[int, int]
) -> None:
    """End what was said without days when a believed fact of another object begins that was said later.

    "Is based in A" is over once a text tells of a move to B in 2019. What was said after that text stands: it may
    tell of a move back.
    """
    for claim in claims:
        fact = facts[claim.fact_id]
        if fact.closed_at is not None or not claim.timeless:
            continue
        later = [
            other
            for other in claims
            if other.valid_from != ALWAYS
            and not other.agrees(claim)
            and order[other.fact_id] > order[claim.fact_id]
            and facts[other.fact_id].belief >= LEAST_BELIEF
        ]
        if later and not any(other.agrees(claim) and not other.timeless for other in claims):
            end = max(later, key=lambda other: (other.valid_from, other.fact_id))
            fact.held_until = end.valid_from
            fact.closed_at = max(begun[claim.fact_id], begun[end.fact_id])
            fact.closed_reason, fact.superseded_by = SUPERSEDED, end.fact_id


def _supersede(claims: Sequence[Claim], facts: Mapping[int, Fact], begun: Mapping[int, datetime]) -> None:
    """End a fact without an end of its own when the next believed one begins."""
    for claim in claims:
        fact = facts[claim.fact_id]
        if fact.closed_at is not None or claim.valid_to != NEVER or claim.valid_from == ALWAYS:
            continue
        later = [
            other
            for other in claims
            if other.valid_from > claim.valid_from
            and not other.agrees(claim)
            and facts[other.fact_id].belief >= LEAST_BELIEF
        ]
        if later:
            end = min(later, key=lambda other: (other.valid_from, other.fact_id))
            fact.held_until = end.valid_from
            fact.closed_at = max(begun[claim.fact_id], begun[end.fact_id])
            fact.closed_reason, fact.superseded_by = SUPERSEDED, end.fact_id


def _end_timeless(claims: Sequence[Claim], facts: Mapping[int, Fact], begun: Mapping[int, datetime]) -> None:
    """End a fact without days, such as a holder on an old page, if the same fact is known to be over."""
    for claim in claims:
        fact = facts[claim.fact_id]
        if not claim.timeless or fact.closed_at is not None:
            continue
        dated = [facts[other.fact_id] for other in claims if other.agrees(claim) and not other.timeless]
        if dated and all(other.closed_reason == SUPERSEDED for other in dated):
            last = max(dated, key=lambda other: other.held_until)
            fact.held_until, fact.superseded_by = last.held_until, last.superseded_by
            fact.closed_at = max([begun[claim.fact_id], *(o.closed_at for o in dated if o.closed_at is not None)])
            fact.closed_reason = SUPERSEDED
