"""States as the log says they are: the step of ``states`` taken once for each event, in the order of application.

A state goes its own way, event by event, and what it comes to does not depend on which others are replayed beside
it. Without an event it goes another way from that event on. All ways of a state are gone together, which takes
little longer than one of them.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Generic, TypeVar

from engram.core.filter.caps import Said, contested, with_word
from engram.core.filter.states import (
    CHANNELS,
    Audit,
    AuditRows,
    Event,
    SentenceMemory,
    SentenceObservation,
    Support,
    Vector,
    move_memories,
    move_supports,
)

State = TypeVar("State", SentenceMemory, Support)


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """One event's say on one state.

    Attributes:
        sequence: the event's place in the order of application.
        recorded: what the audit says it did.
        direction: of a memory: the question's embedding, or its time constraint's, (d,).
    """

    sequence: int
    event: Event
    recorded: Audit
    direction: Vector | None = None

    @property
    def observation(self) -> SentenceObservation:
        """Return the event's observation with its own noise; later settings do not change the past."""
        return SentenceObservation(
            self.event, self.recorded.sentence_id, self.recorded.target, self.recorded.observation_noise
        )


@dataclass(frozen=True, slots=True)
class SentenceJudgement:
    """Judgement of a sentence for a question by one event: ``target`` is 1 for support, 0 for rejection."""

    question_id: int
    sentence_id: int
    sequence: int
    event_id: int
    judge: str
    target: int


@dataclass(frozen=True, slots=True)
class Replayed(Generic[State]):
    """A state after the last event that touched it.

    Attributes:
        without: the event that is left out; None: it is the state after all of them.
        corrected: after all of them, audit rows as they ought to read, of those that read otherwise.
    """

    state: State
    without: int | None = None
    corrected: list[Audit] = field(default_factory=list)


Bases = Mapping[tuple[int, str], Vector]
"""(Sentence, channel) -> what its memory begins as, (d,)."""


def memories(
    bases: Bases, steps: Iterable[ReplayStep], without: Container[int] = frozenset()
) -> Iterator[Replayed[SentenceMemory]]:
    """The memories that events touched, by sentence and channel: after all events, and without single ones.

    Of what has no base there is nothing to replay.

    Args:
        steps: by sentence, sequence and channel.
        without: events to leave out, each by itself.
    """
    for sentence, of_sentence in groupby(steps, key=lambda step: step.recorded.sentence_id):
        begun = {
            channel: SentenceMemory(sentence, channel, bases[sentence, channel])
            for channel in CHANNELS
            if (sentence, channel) in bases
        }
        yield from _sentence(begun, of_sentence, without)


@dataclass(frozen=True, slots=True)
class _SentencePath:
    """States of one sentence: memories by channel, and judgements by question."""

    memories: dict[str, SentenceMemory]
    said: dict[int, Said]

    def fork(self) -> "_SentencePath":
        return _SentencePath(dict(self.memories), dict(self.said))


def _sentence(
    begun: dict[str, SentenceMemory], steps: Iterator[ReplayStep], without: Container[int]
) -> Iterator[Replayed[SentenceMemory]]:
    """All channels of a sentence together: they hear the same of what judges said of it."""
    ways: dict[int | None, _SentencePath] = {None: _SentencePath(begun, {})}
    corrected: dict[str, list[Audit]] = {channel: [] for channel in begun}
    for _, of_event in groupby(steps, key=lambda step: step.sequence):
        observations = list(of_event)
        event, target = observations[0].event, observations[0].recorded.target
        fork = ways[None].fork() if event.id in without else None
        before = [way.said.get(event.question_id, ()) for way in ways.values()]
        for step in observations:
            channel = step.recorded.channel
            if channel in begun:
                states = [way.memories[channel] for way in ways.values()]
                moved, told = move_memories(states, before, [step.observation] * len(states), _direction(step))
                for way, memory in zip(ways.values(), moved, strict=True):
                    way.memories[channel] = memory
                corrected[channel] += _wrong(step, told)
        for way, said in zip(ways.values(), before, strict=True):
            way.said[event.question_id] = with_word(said, event.judge, target)
        if fork is not None:
            ways[event.id] = fork
    for left_out, way in ways.items():
        for channel, memory in way.memories.items():
            if memory.update_count:
                yield Replayed(memory, left_out, corrected[channel] if left_out is None else [])


def supports(steps: Iterable[ReplayStep], without: Container[int] = frozenset()) -> Iterator[Replayed[Support]]:
    """The supports that events touched, by question and sentence: after all events, and without single ones.

    Args:
        steps: by question, sentence and sequence.
        without: events to leave out, each by itself; a support without its only event is as it began.
    """
    for (question, sentence), of_state in groupby(
        steps, key=lambda step: (step.event.question_id, step.recorded.sentence_id)
    ):
        ways: dict[int | None, Support] = {None: Support(question, sentence)}
        corrected: list[Audit] = []
        for step in of_state:
            fork = ways[None]
            moved, told = move_supports(list(ways.values()), [step.observation] * len(ways))
            ways = dict(zip(ways, moved, strict=True))
            corrected += _wrong(step, told)
            if step.event.id in without:
                ways[step.event.id] = fork
        for left_out, state in ways.items():
            yield Replayed(state, left_out, corrected if left_out is None else [])


def against(words: Iterable[SentenceJudgement]) -> set[int]:
    """The events that go against what other judges said, by words in order of question, sentence and sequence."""
    found: set[int] = set()
    for _, of_state in groupby(words, key=lambda word: (word.question_id, word.sentence_id)):
        statements: Said = ()
        for word in of_state:
            if contested(statements, word.judge, word.target):
                found.add(word.event_id)
            statements = with_word(statements, word.judge, word.target)
    return found


def _wrong(step: ReplayStep, audit_rows: AuditRows) -> list[Audit]:
    """The row as it ought to read; nothing if it does. All ways' first is that of all events."""
    right = next(iter(audit_rows))
    return [] if right == step.recorded else [right]


def _direction(step: ReplayStep) -> Vector:
    if step.direction is None:
        raise ValueError(f"event {step.event.id} moved a memory without a direction")
    return step.direction
