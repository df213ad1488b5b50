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

from engram.core.filter.caps import JudgeStatements, add_statement, is_contested
from engram.core.filter.observations import (
    Directions,
    Observations,
    add_judgements,
    add_text_judgements,
    move_memories,
    move_supports,
)
from engram.core.filter.state_rows import MemoryRows, SupportRows
from engram.core.filter.states import (
    AUDITED,
    CHANNELS,
    Audit,
    AuditRows,
    Event,
    SentenceMemory,
    Support,
    Vector,
)

State = TypeVar("State", SentenceMemory, Support)
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
        direction: of a memory: the question's embedding, or its time constraint's, (d,).
    """

    sequence: int
    event: Event
    recorded: Audit
    direction: Vector | None = None


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


Bases = Mapping[tuple[int, str], Vector]
"""(Sentence, channel) -> what its memory begins as, (d,)."""


def replay_memories(
    bases: Bases, steps: Iterable[ReplayStep], without: Container[int] = frozenset()
) -> Iterator[ReplayedState[SentenceMemory]]:
    """Replay memories, by sentence and channel: with all events, and once without each event of ``without``.

    Of what has no base there is nothing to replay.

    Args:
        steps: by sentence, sequence and channel.
        without: events to leave out, each by itself.
    """
    paths: dict[int, _SentencePaths] = {}
    for batch, unfinished in _batches(steps, lambda step: step.recorded.sentence_id):
        for step in batch:
            sentence = step.recorded.sentence_id
            if sentence not in paths:
                paths[sentence] = _SentencePaths.start(sentence, bases)
            if step.event.id in without:
                paths[sentence].fork(step.event.id)
        _move_memories(paths, batch)
        for sentence in [sentence for sentence in paths if sentence != unfinished]:
            yield from paths.pop(sentence).list_moved()


@dataclass(frozen=True, slots=True)
class _SentencePaths:
    """Memories of one sentence on all its ways.

    All channels belong together, because they share what judges said of the sentence.

    Attributes:
        memories: (way, channel) -> memory.
        statements: (way, question, revision) -> statements on that text of the sentence.
        ways: in the order in which they began.
        corrected: channel -> see ``ReplayedState``.
    """

    memories: dict[tuple[LeftOutEvent, str], SentenceMemory]
    statements: dict[tuple[LeftOutEvent, int, int], JudgeStatements]
    ways: list[LeftOutEvent]
    corrected: dict[str, list[Audit]]

    @classmethod
    def start(cls, sentence: int, bases: Bases) -> "_SentencePaths":
        channels = [channel for channel in CHANNELS if (sentence, channel) in bases]
        own: dict[tuple[LeftOutEvent, str], SentenceMemory] = {
            (None, channel): SentenceMemory(sentence, channel, bases[sentence, channel]) for channel in channels
        }
        return cls(own, {}, [None], {channel: [] for channel in channels})

    def fork(self, event: int) -> None:
        """Begin the way without an event, from where the main way stands."""
        if event in self.ways:
            return
        self.ways.append(event)
        for channel in self.corrected:
            self.memories[event, channel] = self.memories[None, channel]
        self.statements.update(
            {
                (event, question, revision): words
                for (way, question, revision), words in self.statements.items()
                if way is None
            }
        )

    def list_moved(self) -> Iterator[ReplayedState[SentenceMemory]]:
        """The memories that any event moved."""
        for (way, channel), memory in self.memories.items():
            if memory.update_count:
                yield ReplayedState(memory, way, self.corrected[channel] if way is None else [])


def _move_memories(paths: Mapping[int, _SentencePaths], batch: Sequence[ReplayStep]) -> None:
    """Move the memories of the batch's sentences on all their ways."""
    moves = [
        (step, paths[step.recorded.sentence_id], way)
        for step in batch
        for way in paths[step.recorded.sentence_id].ways
        if way != step.event.id
    ]
    opposed = _record_judgements(moves)
    based = [row for row, (step, path, _) in enumerate(moves) if step.recorded.channel in path.corrected]
    own = [moves[row] for row in based]
    places: dict[tuple[int, LeftOutEvent, str], int] = {}
    states = [
        places.setdefault((step.recorded.sentence_id, way, step.recorded.channel), len(places))
        for step, _, way in own
    ]
    before = [paths[sentence].memories[way, channel] for sentence, way, channel in places]
    observations = _observations([step for step, _, _ in own], states, opposed[based])
    memories_after, audit = move_memories(
        MemoryRows.from_rows(before), observations, _directions([step for step, _, _ in own])
    )
    for (sentence, way, channel), memory in zip(places, memories_after, strict=True):
        paths[sentence].memories[way, channel] = memory
    for row, right in _corrections([(step, way) for step, _, way in own], audit):
        own[row][1].corrected[right.channel].append(right)


def _record_judgements(moves: Sequence[tuple[ReplayStep, _SentencePaths, LeftOutEvent]]) -> NDArray[np.bool_]:
    """Record the judgements of the steps; return which of them contradict other judges, (n,)."""
    judged_paths: dict[tuple[int, LeftOutEvent, int, int], _SentencePaths] = {}
    places: dict[tuple[int, LeftOutEvent, int, int], int] = {}
    own = []
    for step, path, way in moves:
        key = (step.recorded.sentence_id, way, step.event.question_id, step.recorded.revision)
        judged_paths[key] = path
        own.append(places.setdefault(key, len(places)))
    statements = [path.statements.get(key[1:], ()) for key, path in judged_paths.items()]
    opposed = add_judgements(
        statements, own, [step.event.judge for step, _, _ in moves], [step.recorded.target for step, _, _ in moves]
    )
    for (key, path), words in zip(judged_paths.items(), statements, strict=True):
        path.statements[key[1:]] = words
    return opposed


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
    for batch, unfinished in _batches(steps, _support_key):
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
    """Move the supports of the batch on all their ways; corrections as of ``_corrections``."""
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
    observations = _observations([step for step, _ in moves], states, opposed)
    supports_after, audit = move_supports(before, observations, statements)
    for (key, way), support in zip(places, supports_after, strict=True):
        paths[key][way] = support
    for row, right in _corrections(moves, audit):
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


def _batches(
    steps: Iterable[ReplayStep], key_of: Callable[[ReplayStep], Key]
) -> Iterator[tuple[list[ReplayStep], Key | None]]:
    """Batches of steps, each with the key of the state that goes on in the next one; None: none does."""
    remaining = iter(steps)
    batch = list(islice(remaining, BATCH))
    while batch:
        following = list(islice(remaining, BATCH))
        last = key_of(batch[-1])
        yield batch, last if following and key_of(following[0]) == last else None
        batch = following


def _observations(steps: Sequence[ReplayStep], states: Sequence[int], opposed: NDArray[np.bool_]) -> Observations:
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


def _directions(steps: Sequence[ReplayStep]) -> Directions:
    """Directions of the steps; an event has one for each channel.

    Raises:
        ValueError: a step has none.
    """
    vectors: list[Vector] = []
    places: dict[tuple[int, str], int] = {}
    for step in steps:
        key = step.event.id, step.recorded.channel
        if key not in places:
            if step.direction is None:
                raise ValueError(f"event {step.event.id} moved a memory without a direction")
            places[key] = len(vectors)
            vectors.append(step.direction)
    rows = [places[step.event.id, step.recorded.channel] for step in steps]
    return Directions(vectors, np.array(rows, dtype=np.int64))


def _corrections(moves: Sequence[tuple[ReplayStep, LeftOutEvent]], audit: AuditRows) -> Iterator[tuple[int, Audit]]:
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
