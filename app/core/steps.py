"""What events move of all states that they speak of, one after the other: ``states`` taken along the log.

An event goes by what those before it left of the states that both speak of, and by nothing else. So of a batch
those that meet in no state are moved at once, in waves: the n-th wave has each state's n-th event. That comes to
the bits that one event after the other comes to.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.core.caps import Said, contested
from app.core.states import (
    CHANNELS,
    RECALL,
    TASK,
    AuditRows,
    Event,
    Memory,
    Observation,
    Support,
    Vector,
    move_memories,
    move_supports,
    seen_noise,
)

Memories = Mapping[tuple[int, str], Memory]
"""(Sentence, channel) -> as it stands."""
Supports = Mapping[tuple[int, int], Support]
"""(Question, sentence) -> as it stands; of those that are not there, nothing was said yet."""


@dataclass(frozen=True, slots=True)
class Saying:
    """An event and all that it says.

    Attributes:
        targets: sentence -> y; those without a task memory are gone, and are left alone.
        directions: channel -> what its memories move along, (d,); a channel without one is left alone.
        noise: R by y and the state's perplexity.
        frozen: for ablations: channels that are left alone, ``RECALL`` among them.
        examined: sentence -> with what probability the judge looked at it, in (0, 1]; others for certain. Silence
            about what perhaps nobody saw says so much less: R is divided by it.
    """

    event: Event
    targets: Mapping[int, int]
    directions: Mapping[str, Vector]
    noise: Callable[[int, float], float]
    frozen: frozenset[str] = frozenset()
    examined: Mapping[int, float] = field(default_factory=dict)

    def of(self, state: Memory | Support) -> Observation:
        """What it says of a state of a sentence that it speaks of."""
        sentence = state.sentence_id
        target = self.targets[sentence]
        noise = seen_noise(self.noise(target, state.perplexity), self.examined.get(sentence, 1.0))
        return Observation(self.event, sentence, target, noise)


@dataclass(frozen=True, slots=True)
class Moved:
    """What events moved.

    Attributes:
        memories, supports: the states after the last event that moved them.
        audit: a row for each state and event.
        contested: events that go against what other judges said of a sentence.
    """

    memories: list[Memory] = field(default_factory=list)
    supports: list[Support] = field(default_factory=list)
    audit: AuditRows = field(default_factory=AuditRows.none)
    contested: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _Word:
    """An event on one sentence."""

    saying: Saying
    sentence: int


def step(saying: Saying, memories: Memories, supports: Supports) -> Moved:
    """What one event moves: see ``steps``."""
    return steps([saying], memories, supports)


def steps(sayings: Sequence[Saying], memories: Memories, supports: Supports) -> Moved:
    """What events move of all states that they speak of, in the given order.

    A rejection counts also where nothing ever supported the sentence: it recalls nothing, but the surer the state,
    the less a later verdict that errs can move it.
    """
    words = [
        _Word(saying, sentence)
        for saying in sayings
        for sentence in sorted(saying.targets)
        if (sentence, TASK) in memories
    ]
    known, said, recalled = _supports(words, supports)
    moved: dict[tuple[int, str], Memory] = {}
    audit: list[AuditRows] = []
    for channel in CHANNELS:
        audit += _memories(channel, words, said, memories, moved)
    against = (
        word.saying.event.id
        for word, before in zip(words, said, strict=True)
        if before and contested(before, word.saying.event.judge, word.saying.targets[word.sentence])
    )
    return Moved(
        list(moved.values()), list(known.values()), AuditRows.joined([*audit, *recalled]), frozenset(against)
    )


def _supports(
    words: Sequence[_Word], supports: Supports
) -> tuple[dict[tuple[int, int], Support], list[Said], list[AuditRows]]:
    """Supports that moved; of each word, what judges said of its sentence for its question before it; the audit."""
    keys = [(word.saying.event.question_id, word.sentence) for word in words]
    moved: dict[tuple[int, int], Support] = {}
    said: list[Said] = [()] * len(words)
    audit: list[AuditRows] = []
    for wave in _waves(keys):
        held, told = [], []
        for at in wave:
            support = moved.get(keys[at]) or supports.get(keys[at]) or Support(*keys[at])
            said[at] = support.said
            if RECALL not in words[at].saying.frozen:
                held.append(support)
                told.append(words[at].saying.of(support))
        after, rows = move_supports(held, told)
        moved.update(((support.question_id, support.sentence_id), support) for support in after)
        audit.append(rows)
    return moved, said, audit


def _memories(
    channel: str,
    words: Sequence[_Word],
    said: Sequence[Said],
    memories: Memories,
    moved: dict[tuple[int, str], Memory],
) -> list[AuditRows]:
    """Move the memories of a channel, into ``moved``; the audit."""
    heard = [
        at
        for at, word in enumerate(words)
        if channel in word.saying.directions
        and channel not in word.saying.frozen
        and (word.sentence, channel) in memories
    ]
    audit = []
    for wave in _waves([words[at].sentence for at in heard]):
        places = [heard[at] for at in wave]
        keys = [(words[at].sentence, channel) for at in places]
        held = [moved.get(key) or memories[key] for key in keys]
        after, rows = move_memories(
            held,
            [said[at] for at in places],
            [words[at].saying.of(memory) for at, memory in zip(places, held, strict=True)],
            np.stack([words[at].saying.directions[channel] for at in places]),
        )
        moved.update(zip(keys, after, strict=True))
        audit.append(rows)
    return audit


def _waves(keys: Sequence[Hashable]) -> list[list[int]]:
    """Places of the keys, such that the n-th list has each key's n-th place."""
    waves: list[list[int]] = []
    seen: dict[Hashable, int] = {}
    for at, key in enumerate(keys):
        wave = seen.get(key, 0)
        seen[key] = wave + 1
        if wave == len(waves):
            waves.append([])
        waves[wave].append(at)
    return waves
