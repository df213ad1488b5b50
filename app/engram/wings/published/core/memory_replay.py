"""Memories as the log says they are, by the engine that workers use; see ``core.learning.state_replay``."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.core.learning.caps import JudgeStatements
from engram.core.learning.observations import add_judgements
from engram.core.learning.state_replay import (
    LeftOutEvent,
    ReplayedState,
    ReplayStep,
    build_observations,
    find_corrections,
    read_batches,
)
from engram.core.learning.states import CHANNELS, Audit, Vector
from engram.wings.published.core.memory_moves import Directions, move_memories
from engram.wings.published.core.memory_states import MemoryRows, SentenceMemory


@dataclass(frozen=True, slots=True)
class MemoryStep(ReplayStep):
    """One logged update of one memory by one event.

    Attributes:
        direction: the question's embedding, or its time constraint's, (d,).
    """

    direction: Vector | None = None


Bases = Mapping[tuple[int, str], Vector]
"""(Sentence, channel) -> what its memory begins as, (d,)."""


def replay_memories(
    bases: Bases, steps: Iterable[MemoryStep], without: Container[int] = frozenset()
) -> Iterator[ReplayedState[SentenceMemory]]:
    """Replay memories, by sentence and channel: with all events, and once without each event of ``without``.

    Of what has no base there is nothing to replay.

    Args:
        steps: by sentence, sequence and channel.
        without: events to leave out, each by itself.
    """
    paths: dict[int, _SentencePaths] = {}
    for batch, unfinished in read_batches(steps, lambda step: step.recorded.sentence_id):
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


def _move_memories(paths: Mapping[int, _SentencePaths], batch: Sequence[MemoryStep]) -> None:
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
    observations = build_observations([step for step, _, _ in own], states, opposed[based])
    memories_after, audit = move_memories(
        MemoryRows.from_rows(before), observations, _collect_directions([step for step, _, _ in own])
    )
    for (sentence, way, channel), memory in zip(places, memories_after, strict=True):
        paths[sentence].memories[way, channel] = memory
    for row, right in find_corrections([(step, way) for step, _, way in own], audit):
        own[row][1].corrected[right.channel].append(right)


def _record_judgements(moves: Sequence[tuple[MemoryStep, _SentencePaths, LeftOutEvent]]) -> NDArray[np.bool_]:
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


def _collect_directions(steps: Sequence[MemoryStep]) -> Directions:
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
