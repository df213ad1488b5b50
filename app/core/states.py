"""The one step of learning: a state and what an event says of it give the next state and an audit row.

Whoever computes a learned state takes this step: the worker that applies verdicts, a replay of the log and what
goes by it (revocations, verifications, past states), and an explanation that leaves a verdict out. States are the
memories of a sentence (GAM-RAG, Eq. 2), a vector each, and how surely a sentence supports a question, a number.
Both go by the same filter (``kalman``), within the caps of the judge (``caps``).

Many states of one event are moved together. What becomes of each does not depend on the others, to the bit.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from app.core import kalman
from app.core.caps import UNTOUCHED, Pulled, Said, allowed_gain, contested, with_word
from app.core.kalman import Floats, MemoryUpdate, SupportUpdate

Vector = NDArray[np.float32]

TASK = "task"
TIME = "time"
CHANNELS = (TASK, TIME)
"""Of a sentence's memory."""
MARKS = " ?!.,;:…\"'“”‘’«»¿¡？！。"
"""Of a question's ends, that say nothing."""
RECALL = "recall"
"""What the audit calls a question's supports."""
NOTHING_HALF_SEEN: Mapping[int, float] = MappingProxyType({})
"""Of a judge that looked at all that it speaks of."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One channel of a sentence's memory: unit vector (d,), perplexity in [0, 1].

    As it begins, at perplexity 1, its vector is the sentence's embedding, or its time expression's.
    """

    sentence_id: int
    channel: str
    vector: Vector
    perplexity: float = 1.0
    update_count: int = 0
    pulled: Pulled = UNTOUCHED


@dataclass(frozen=True, slots=True)
class Support:
    """How surely a sentence supports a question; ``support`` and ``perplexity`` lie in [0, 1].

    As it begins, it is that of a sentence that no verdict spoke of. ``complete`` is whether the last verdict
    claimed to name all evidence, ``said`` what each judge said last.
    """

    question_id: int
    sentence_id: int
    support: float = 0.0
    perplexity: float = 1.0
    update_count: int = 0
    complete: bool = False
    pulled: Pulled = UNTOUCHED
    said: Said = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A verdict as it counts: what all that it says has in common.

    Attributes:
        question_id: that it teaches.
        judge, day: whose it is (``NEWCOMERS`` of a new judge), and of which day (UTC), as 2026-05-01.
        share, contested_share: of the distance to what the judge's verdicts of a day say, how much they may close
            of one state, in [0, 1]; the second for what goes against what other judges said.
        process_noise: Q of GAM-RAG, Eq. 13, in (0, 1).
        complete: whether it claims to name all evidence.
    """

    id: int
    question_id: int
    judge: str
    day: str
    share: float
    contested_share: float
    process_noise: float
    complete: bool


@dataclass(frozen=True, slots=True)
class Observation:
    """What an event says of a sentence: y of GAM-RAG, Eq. 10, and how unreliably, R > 0 of Eq. 11."""

    event: Event
    sentence_id: int
    target: int
    observation_noise: float


@dataclass(frozen=True, slots=True)
class Audit:
    """What one event did to one state, and the noises with which it did: R and Q of GAM-RAG, Eqs. 11 and 13."""

    event_id: int
    sentence_id: int
    channel: str
    target: int
    observation_noise: float
    gain: float
    residual: float
    perplexity_before: float
    perplexity_after: float
    process_noise: float

    @classmethod
    def of(
        cls,
        observation: Observation,
        channel: str,
        gain: float = 0.0,
        residual: float = 0.0,
        perplexity_before: float = 1.0,
        perplexity_after: float = 1.0,
    ) -> "Audit":
        """That of an observation; what it did is by default what a replay has yet to tell."""
        return cls(
            observation.event.id,
            observation.sentence_id,
            channel,
            observation.target,
            observation.observation_noise,
            gain,
            residual,
            perplexity_before,
            perplexity_after,
            observation.event.process_noise,
        )

    @property
    def capped(self) -> bool:
        """Whether a cap held the gain below that of Eq. 11."""
        free = kalman.kalman_gain(np.array([self.perplexity_before]), np.array([self.observation_noise]))
        return self.gain < (1 - 1e-9) * float(free[0])

    @property
    def strength(self) -> float:
        """How far it moved the state along the question: K |r| of Eq. 12."""
        return self.gain * abs(self.residual)


@dataclass(frozen=True, slots=True)
class Moved:
    """What one event moved.

    Attributes:
        memories, supports: the states after it.
        audit: a row for each of them.
        contested: whether the event goes against what other judges said of a sentence.
    """

    memories: list[Memory] = field(default_factory=list)
    supports: list[Support] = field(default_factory=list)
    audit: list[Audit] = field(default_factory=list)
    contested: bool = False


def question_hash(question: str) -> bytes:
    """Equal questions share their supports; white space, case and marks at the ends make no other question."""
    words = " ".join(question.casefold().split())
    return hashlib.sha256((words.strip(MARKS) or words).encode()).digest()


def seen_noise(observation_noise: float, examined: float) -> float:
    """R of what a judge says of a sentence that it looked at with this probability only, in (0, 1].

    Raises:
        ValueError: the probability is out of its range.
    """
    if not 0.0 < examined <= 1.0:
        raise ValueError("an examination probability must lie in (0, 1]")
    return observation_noise / examined


def step(
    event: Event,
    targets: Mapping[int, int],
    directions: Mapping[str, Vector],
    noise: Callable[[int, float], float],
    memories: Mapping[tuple[int, str], Memory],
    supports: Mapping[tuple[int, int], Support],
    frozen: frozenset[str] = frozenset(),
    examined: Mapping[int, float] = NOTHING_HALF_SEEN,
) -> Moved:
    """What an event moves of all states that it speaks of.

    A rejection counts also where nothing ever supported the sentence: it recalls nothing, but the surer the state,
    the less a later verdict that errs can move it.

    Args:
        targets: sentence -> y; those without a task memory are gone, and are left alone.
        directions: channel -> what its memories move along, (d,); a channel without one is left alone.
        noise: R by y and the state's perplexity.
        memories: (sentence, channel) -> as it stands.
        supports: (question, sentence) -> as it stands; of those that are not there, nothing was said yet.
        frozen: for ablations: channels that are left alone, ``RECALL`` among them.
        examined: sentence -> with what probability the judge looked at it, in (0, 1]; others for certain. Silence
            about what perhaps nobody saw says so much less: R is divided by it.
    """
    known = {
        sentence: supports.get((event.question_id, sentence)) or Support(event.question_id, sentence)
        for sentence in sorted(targets)
        if (sentence, TASK) in memories
    }

    def observed(states: Sequence[Memory | Support]) -> list[Observation]:
        found = ((state, targets[state.sentence_id]) for state in states)
        return [
            Observation(
                event,
                state.sentence_id,
                y,
                seen_noise(noise(y, state.perplexity), examined.get(state.sentence_id, 1.0)),
            )
            for state, y in found
        ]

    moved = Moved(contested=any(contested(now.said, event.judge, targets[s]) for s, now in known.items()))
    for channel in CHANNELS:
        if channel in directions and channel not in frozen:
            held = [memories[sentence, channel] for sentence in known if (sentence, channel) in memories]
            said = [known[memory.sentence_id].said for memory in held]
            rows = move_memories(held, said, observed(held), directions[channel])
            moved.memories.extend(memory for memory, _ in rows)
            moved.audit.extend(row for _, row in rows)
    if RECALL not in frozen:
        now = list(known.values())
        told = move_supports(now, observed(now))
        moved.supports.extend(support for support, _ in told)
        moved.audit.extend(row for _, row in told)
    return moved


def move_memories(
    memories: Sequence[Memory], said: Sequence[Said], observations: Sequence[Observation], direction: Vector
) -> list[tuple[Memory, Audit]]:
    """Memories after one more event, each with its audit row.

    Args:
        said: what judges said before of each one's sentence for the event's question.
        observations: one for each, all of one event.
        direction: the question's embedding, or its time constraint's, (d,).

    Raises:
        ValueError: the lengths differ, the observations are of several events, or a value is out of its range.
    """
    if not memories:
        return []
    event, prior = _event(observations), _Prior.of(memories, said, observations)
    update = kalman.update_memories(
        np.stack([memory.vector for memory in memories]),
        prior.perplexities,
        direction,
        prior.targets,
        prior.noise,
        event.process_noise,
        most=prior.most,
    )
    perplexities, gains = update.perplexities.tolist(), update.gains.tolist()
    after = [
        Memory(
            memory.sentence_id,
            memory.channel,
            update.vectors[at],
            perplexities[at],
            memory.update_count + 1,
            prior.pulled[at].after(event.judge, gains[at]),
        )
        for at, memory in enumerate(memories)
    ]
    channels = [memory.channel for memory in memories]
    return list(zip(after, _audit(observations, channels, prior, update), strict=True))


def move_supports(supports: Sequence[Support], observations: Sequence[Observation]) -> list[tuple[Support, Audit]]:
    """Supports after one more event, each with its audit row: see ``move_memories``."""
    if not supports:
        return []
    event, prior = _event(observations), _Prior.of(supports, [support.said for support in supports], observations)
    update = kalman.update_supports(
        np.array([support.support for support in supports]),
        prior.perplexities,
        prior.targets,
        prior.noise,
        event.process_noise,
        most=prior.most,
    )
    values, perplexities, gains = update.supports.tolist(), update.perplexities.tolist(), update.gains.tolist()
    after = [
        Support(
            support.question_id,
            support.sentence_id,
            values[at],
            perplexities[at],
            support.update_count + 1,
            event.complete,
            prior.pulled[at].after(event.judge, gains[at]),
            with_word(support.said, event.judge, observations[at].target),
        )
        for at, support in enumerate(supports)
    ]
    return list(zip(after, _audit(observations, [RECALL] * len(supports), prior, update), strict=True))


@dataclass(frozen=True, slots=True)
class _Prior:
    """What n states are before an event, and what it says of them; arrays are (n,).

    Attributes:
        pulled: what judges left of each so far on the event's day.
        most: the largest gain that the judge's caps allow.
    """

    pulled: list[Pulled]
    perplexities: Floats
    targets: Floats
    noise: Floats
    most: Floats

    @classmethod
    def of(
        cls, states: Sequence[Memory | Support], said: Sequence[Said], observations: Sequence[Observation]
    ) -> "_Prior":
        pulled = [state.pulled.on(observed.event.day) for state, observed in zip(states, observations, strict=True)]
        most = [
            allowed_gain(
                left,
                words,
                observed.event.judge,
                observed.target,
                share=observed.event.share,
                contested_share=observed.event.contested_share,
            )
            for left, words, observed in zip(pulled, said, observations, strict=True)
        ]
        return cls(
            pulled=pulled,
            perplexities=np.array([state.perplexity for state in states]),
            targets=np.array([float(observed.target) for observed in observations]),
            noise=np.array([observed.observation_noise for observed in observations]),
            most=np.array(most),
        )


def _event(observations: Sequence[Observation]) -> Event:
    """The event that all of them are of: one filter step has one direction and one process noise."""
    event = observations[0].event
    if any(observed.event is not event for observed in observations):
        raise ValueError("observations of several events are several steps")
    return event


def _audit(
    observations: Sequence[Observation],
    channels: Sequence[str],
    prior: _Prior,
    update: MemoryUpdate | SupportUpdate,
) -> list[Audit]:
    columns = (update.gains, update.residuals, prior.perplexities, update.perplexities)
    rows = zip(observations, channels, *(column.tolist() for column in columns), strict=True)
    return [Audit.of(observed, channel, *numbers) for observed, channel, *numbers in rows]
