"""States as the log says they are: the observations of all events, moved by the engine that workers use.

A state follows its own events, and its result does not depend on which others are replayed beside it. Without an
event it goes another way: it is then a state of its own, with all observations but the event's. The log is read in
batches, so that a replay holds little at once.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from engram.core.learning.caps import JudgeStatements, add_statement, is_contested
from engram.core.learning.observations import (
    Observations,
    add_text_judgements,
    move_supports,
)
from engram.core.learning.state_rows import SupportRows
from engram.core.learning.states import (
    AUDITED,
    Audit,
    AuditRows,
    Event,
    Support,
)

State = TypeVar("State")
Step = TypeVar("Step", bound="ReplayStep")
Key = TypeVar("Key")
LeftOutEvent = int | None
"""The event that is left out; None: none is."""
BATCH = 4_000
"""Steps that are held and moved together."""


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """One logged update of one state by one event.

    Attributes:
        sequence: the event's place in the order of application.
        recorded: what the audit says it did.
    """

    sequence: int
    event: Event
    recorded: Audit


@dataclass(frozen=True, slots=True)
class SentenceJudgement:
    """Judgement of a sentence for a question by one event: ``target`` is 1 for support, 0 for rejection.

    ``revision``: which text of the sentence was judged, see ``JudgedText``.
    """

    question_id: int
    sentence_id: int
    sequence: int
    event_id: int
    judge: str
    target: int
    revision: int = 0


@dataclass(frozen=True, slots=True)
class ReplayedState(Generic[State]):
    """A state after the last event that touched it.

    Attributes:
        without: the event that is left out; None: it is the state after all of them.
        corrected: recomputed audit rows that differ from the stored ones; empty if an event is left out.
    """

    state: State
    without: int | None = None
    corrected: list[Audit] = field(default_factory=list)


def replay_supports(
    steps: Iterable[ReplayStep], without: Container[int] = frozenset()
) -> Iterator[ReplayedState[Support]]:
    """Replay supports, by question and sentence: with all events, and once without each event of ``without``.

    Args:
        steps: by question, sentence and sequence.
        without: events to leave out, each by itself; a support without its only event is as it began.
    """
    paths: dict[tuple[int, int], dict[LeftOutEvent, Support]] = {}
    corrected: dict[tuple[int, int], list[Audit]] = {}
    for batch, unfinished in read_batches(steps, _support_key):
        for step in batch:
            key = _support_key(step)
            ways = paths.setdefault(key, {None: Support(*key)})
            if step.event.id in without:
                ways.setdefault(step.event.id, ways[None])
        for step, right in _move_supports(paths, batch):
            corrected.setdefault(_support_key(step), []).append(right)
        for key in [key for key in paths if key != unfinished]:
            own = corrected.pop(key, [])
            for way, support in paths.pop(key).items():
                yield ReplayedState(support, way, own if way is None else [])


def _move_supports(
    paths: Mapping[tuple[int, int], dict[LeftOutEvent, Support]], batch: Sequence[ReplayStep]
) -> Iterator[tuple[ReplayStep, Audit]]:
    """Move the supports of the batch on all their ways; corrections as of ``find_corrections``."""
    moves = [(step, way) for step in batch for way in paths[_support_key(step)] if way != step.event.id]
    places: dict[tuple[tuple[int, int], LeftOutEvent], int] = {}
    states = [places.setdefault((_support_key(step), way), len(places)) for step, way in moves]
    before = SupportRows.from_rows([paths[key][way] for key, way in places])
    statements = [*before.statements]
    opposed = add_text_judgements(
        statements,
        states,
        [step.recorded.revision for step, _ in moves],
        [step.event.judge for step, _ in moves],
        [step.recorded.target for step, _ in moves],
    )
    observations = build_observations([step for step, _ in moves], states, opposed)
    supports_after, audit = move_supports(before, observations, statements)
    for (key, way), support in zip(places, supports_after, strict=True):
        paths[key][way] = support
    for row, right in find_corrections(moves, audit):
        yield moves[row][0], right


def _support_key(step: ReplayStep) -> tuple[int, int]:
    return step.event.question_id, step.recorded.sentence_id


def find_opposing_events(judgements: Iterable[SentenceJudgement]) -> set[int]:
    """Events that contradict other judges. ``judgements`` are in order of question, sentence and sequence."""
    opposing_events: set[int] = set()
    for _, of_state in groupby(judgements, key=lambda one: (one.question_id, one.sentence_id)):
        statements: dict[int, JudgeStatements] = {}
        for one in of_state:
            before = statements.get(one.revision, ())
            if is_contested(before, one.judge, one.target):
                opposing_events.add(one.event_id)
            statements[one.revision] = add_statement(before, one.judge, one.target)
    return opposing_events


def read_batches(steps: Iterable[Step], key_of: Callable[[Step], Key]) -> Iterator[tuple[list[Step], Key | None]]:
    """Batches of steps, each with the key of the state that goes on in the next one; None: none does."""
    remaining = iter(steps)
    batch = list(islice(remaining, BATCH))
    while batch:
        following = list(islice(remaining, BATCH))
        last = key_of(batch[-1])
        yield batch, last if following and key_of(following[0]) == last else None
        batch = following


def build_observations(
    steps: Sequence[ReplayStep], states: Sequence[int], opposed: NDArray[np.bool_]
) -> Observations:
    """Make an observation of each step, of the state at this place."""
    events: dict[int, Event] = {}
    places: dict[int, int] = {}
    for step in steps:
        if step.event.id not in events:
            places[step.event.id] = len(events)
            events[step.event.id] = step.event
    recorded = [step.recorded for step in steps]
    return Observations(
        events=list(events.values()),
        event_places=np.array([places[row.event_id] for row in recorded], dtype=np.int64),
        states=np.array(states, dtype=np.int64),
        sentence_ids=np.array([row.sentence_id for row in recorded], dtype=np.int64),
        channels=np.array([AUDITED.index(row.channel) for row in recorded], dtype=np.int64),
        targets=np.array([row.target for row in recorded], dtype=np.int64),
        noise=np.array([row.observation_noise for row in recorded], dtype=np.float64),
        revisions=np.array([row.revision for row in recorded], dtype=np.int64),
        likeness=np.array([row.likeness for row in recorded], dtype=np.float64),
        opposed=opposed,
    )


def find_corrections(
    moves: Sequence[tuple[ReplayStep, LeftOutEvent]], audit: AuditRows
) -> Iterator[tuple[int, Audit]]:
    """Audit rows of the main way that differ from what is recorded, with their places in ``moves``."""
    recorded = np.array(
        [
            (row.gain, row.residual, row.perplexity_before, row.perplexity_after)
            for row in (step.recorded for step, _ in moves)
        ],
        dtype=np.float64,
    ).reshape(-1, 4)
    right = np.stack([audit.gains, audit.residuals, audit.perplexities_before, audit.perplexities_after], axis=1)
    main = np.array([way is None for _, way in moves], dtype=np.bool_)
    for row in np.flatnonzero(main & (recorded != right).any(axis=1)).tolist():
        gain, residual, before, after = right[row].tolist()
        yield (
            row,
            replace(
                moves[row][0].recorded,
                gain=gain,
                residual=residual,
                perplexity_before=before,
                perplexity_after=after,
            ),
        )
