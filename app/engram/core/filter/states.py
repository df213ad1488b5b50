"""The one step of learning: a state and what an event says of it give the next state and an audit row.

Whoever computes a learned state takes this step: the worker that applies verdicts, a replay of the log and what
goes by it (revocations, verifications, past states), and an explanation that leaves a verdict out. States are the
memories of a sentence (GAM-RAG, Eq. 2), a vector each, and how surely a sentence supports a question, a number.
Both go by the same filter (``kalman``), within the caps of the judge (``caps``).

Many states are moved together, each by an event of its own (``steps``: by those of a batch). What becomes of each
does not depend on the others, to the bit.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.core.filter import kalman, sufficiency_memory
from engram.core.filter.caps import UNTOUCHED, GainBudget, Said, allowed_gain, with_word
from engram.core.filter.kalman import Floats, MemoryUpdate, SupportUpdate

Vector = NDArray[np.float32]

TASK = "task"
TIME = "time"
CHANNELS = (TASK, TIME)
"""Of a sentence's memory."""
MARKS = " ?!.,;:…\"'“”‘’«»¿¡？！。"
"""Of a question's ends, that say nothing."""
RECALL = "recall"
"""What the audit calls a question's supports."""
AUDITED = (*CHANNELS, RECALL)
"""What there are audit rows of."""


@dataclass(frozen=True, slots=True)
class SentenceMemory:
    """One channel of a sentence's memory: unit vector (d,), perplexity in [0, 1].

    As it begins, at perplexity 1, its vector is the sentence's embedding, or its time expression's.
    """

    sentence_id: int
    channel: str
    vector: Vector
    perplexity: float = 1.0
    update_count: int = 0
    pulled: GainBudget = UNTOUCHED


@dataclass(frozen=True, slots=True)
class Support:
    """Support of a question by a sentence; ``support`` and ``perplexity`` lie in [0, 1].

    As it begins, it is that of a sentence that no verdict spoke of. ``complete`` is whether the last verdict
    claimed to name all evidence, ``said`` what each judge said last. ``answered`` and ``sufficiency`` are those of
    ``sufficiency_memory``, in [0, 1].
    """

    question_id: int
    sentence_id: int
    support: float = 0.0
    perplexity: float = 1.0
    update_count: int = 0
    complete: bool = False
    pulled: GainBudget = UNTOUCHED
    said: Said = ()
    answered: float = 0.0
    sufficiency: float = 0.0


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
        sufficiency: of the judged answer, in [0, 1]; None: unknown.
    """

    id: int
    question_id: int
    judge: str
    day: str
    share: float
    contested_share: float
    process_noise: float
    complete: bool
    sufficiency: float | None = None


@dataclass(frozen=True, slots=True)
class SentenceObservation:
    """Observation of a sentence by an event: y of GAM-RAG, Eq. 10, and its noise R > 0 of Eq. 11."""

    event: Event
    sentence_id: int
    target: int
    observation_noise: float


@dataclass(frozen=True, slots=True)
class Audit:
    """Effect of one event on one state, with its noises R and Q of GAM-RAG, Eqs. 11 and 13."""

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
    def of_observation(
        cls,
        observation: SentenceObservation,
        channel: str,
        gain: float = 0.0,
        residual: float = 0.0,
        perplexity_before: float = 1.0,
        perplexity_after: float = 1.0,
    ) -> "Audit":
        """Make the audit of an observation. By default its effect is left for a replay to compute."""
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
        """Distance that the state moved along the question: K |r| of GAM-RAG, Eq. 12."""
        return self.gain * abs(self.residual)


@dataclass(frozen=True, slots=True)
class AuditRows:
    """n rows of ``Audit`` in columns, as they are made, written and counted; arrays are (n,).

    ``channels`` are places in ``AUDITED``.
    """

    event_ids: NDArray[np.int64]
    sentence_ids: NDArray[np.int64]
    channels: NDArray[np.int64]
    targets: NDArray[np.int64]
    observation_noise: Floats
    gains: Floats
    residuals: Floats
    perplexities_before: Floats
    perplexities_after: Floats
    process_noise: Floats

    @classmethod
    def none(cls) -> "AuditRows":
        """No row."""
        ids, numbers = np.zeros(0, dtype=np.int64), np.zeros(0)
        return cls(ids, ids, ids, ids, numbers, numbers, numbers, numbers, numbers, numbers)

    @classmethod
    def from_rows(cls, rows: Sequence[Audit]) -> "AuditRows":
        """Rows in columns."""
        return cls(
            np.array([row.event_id for row in rows], dtype=np.int64),
            np.array([row.sentence_id for row in rows], dtype=np.int64),
            np.array([AUDITED.index(row.channel) for row in rows], dtype=np.int64),
            np.array([row.target for row in rows], dtype=np.int64),
            np.array([row.observation_noise for row in rows], dtype=np.float64),
            np.array([row.gain for row in rows], dtype=np.float64),
            np.array([row.residual for row in rows], dtype=np.float64),
            np.array([row.perplexity_before for row in rows], dtype=np.float64),
            np.array([row.perplexity_after for row in rows], dtype=np.float64),
            np.array([row.process_noise for row in rows], dtype=np.float64),
        )

    @classmethod
    def joined(cls, parts: Sequence["AuditRows"]) -> "AuditRows":
        """All rows of the parts, one part after the other."""
        if not parts:
            return cls.none()
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))

    def __len__(self) -> int:
        return len(self.event_ids)

    def __iter__(self) -> Iterator[Audit]:
        numbers = (
            self.observation_noise,
            self.gains,
            self.residuals,
            self.perplexities_before,
            self.perplexities_after,
            self.process_noise,
        )
        return map(
            Audit,
            self.event_ids.tolist(),
            self.sentence_ids.tolist(),
            (AUDITED[channel] for channel in self.channels.tolist()),
            self.targets.tolist(),
            *(column.tolist() for column in numbers),
        )


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


def move_memories(
    memories: Sequence[SentenceMemory],
    statements: Sequence[Said],
    observations: Sequence[SentenceObservation],
    direction: NDArray[Any],
) -> tuple[list[SentenceMemory], AuditRows]:
    """Memories after one more event each, and the audit of it, in their order.

    Args:
        statements: what judges said before of each one's sentence for its event's question.
        observations: one for each; they may be of several events.
        direction: the question's embedding, or its time constraint's: (d,), or (n, d) where they differ.

    Raises:
        ValueError: the lengths differ, or a value is out of its range.
    """
    if not memories:
        return [], AuditRows.none()
    prior = _Prior.gather(memories, statements, observations)
    update = kalman.update_memories(
        np.stack([memory.vector for memory in memories]),
        prior.perplexities,
        direction,
        prior.targets,
        prior.noise,
        prior.process_noise,
        most=prior.most,
    )
    after = [
        SentenceMemory(memory.sentence_id, memory.channel, vector, perplexity, memory.update_count + 1, pulled)
        for memory, vector, perplexity, pulled in zip(
            memories, update.vectors, update.perplexities.tolist(), prior.pulled_by(update.gains), strict=True
        )
    ]
    return after, prior.audit([memory.channel for memory in memories], update)


def move_supports(
    supports: Sequence[Support], observations: Sequence[SentenceObservation]
) -> tuple[list[Support], AuditRows]:
    """Supports after one more event each, and the audit of it: see ``move_memories``."""
    if not supports:
        return [], AuditRows.none()
    prior = _Prior.gather(supports, [support.said for support in supports], observations)
    update = kalman.update_supports(
        np.array([support.support for support in supports]),
        prior.perplexities,
        prior.targets,
        prior.noise,
        prior.process_noise,
        most=prior.most,
    )
    answered, sufficiency = sufficiency_memory.updated_sufficiency(
        np.array([support.answered for support in supports]),
        np.array([support.sufficiency for support in supports]),
        targets=prior.targets,
        gains=update.gains,
        judged=np.array([observed.event.sufficiency for observed in observations], dtype=np.float64),
        complete=np.array([observed.event.complete for observed in observations], dtype=np.bool_),
    )
    after = [
        Support(
            support.question_id,
            support.sentence_id,
            value,
            perplexity,
            support.update_count + 1,
            observed.event.complete,
            pulled,
            with_word(support.said, observed.event.judge, observed.target),
            highest,
            risen,
        )
        for support, observed, value, perplexity, pulled, highest, risen in zip(
            supports,
            observations,
            update.supports.tolist(),
            update.perplexities.tolist(),
            prior.pulled_by(update.gains),
            answered.tolist(),
            sufficiency.tolist(),
            strict=True,
        )
    ]
    return after, prior.audit([RECALL] * len(supports), update)


@dataclass(frozen=True, slots=True)
class _Prior:
    """States before one event each, and the events' observations; arrays are (n,).

    Attributes:
        pulled: what judges left of each so far on the event's day.
        most: the largest gain that the judge's caps allow.
    """

    observations: Sequence[SentenceObservation]
    pulled: list[GainBudget]
    perplexities: Floats
    targets: Floats
    noise: Floats
    process_noise: Floats
    most: Floats

    @classmethod
    def gather(
        cls,
        states: Sequence[SentenceMemory | Support],
        statements: Sequence[Said],
        observations: Sequence[SentenceObservation],
    ) -> "_Prior":
        budgets = [
            state.pulled.on(observed.event.day) for state, observed in zip(states, observations, strict=True)
        ]
        most = [
            allowed_gain(
                left,
                words,
                observed.event.judge,
                observed.target,
                share=observed.event.share,
                contested_share=observed.event.contested_share,
            )
            for left, words, observed in zip(budgets, statements, observations, strict=True)
        ]
        return cls(
            observations=observations,
            pulled=budgets,
            perplexities=np.array([state.perplexity for state in states]),
            targets=np.array([float(observed.target) for observed in observations]),
            noise=np.array([observed.observation_noise for observed in observations]),
            process_noise=np.array([observed.event.process_noise for observed in observations]),
            most=np.array(most),
        )

    def pulled_by(self, gains: Floats) -> list[GainBudget]:
        """Return the gain budgets after the events."""
        return [
            left.after(observed.event.judge, gain)
            for left, observed, gain in zip(self.pulled, self.observations, gains.tolist(), strict=True)
        ]

    def audit(self, channels: Sequence[str], update: MemoryUpdate | SupportUpdate) -> AuditRows:
        """Return the audits of the update."""
        return AuditRows(
            event_ids=np.array([observed.event.id for observed in self.observations], dtype=np.int64),
            sentence_ids=np.array([observed.sentence_id for observed in self.observations], dtype=np.int64),
            channels=np.array([AUDITED.index(channel) for channel in channels], dtype=np.int64),
            targets=np.array([observed.target for observed in self.observations], dtype=np.int64),
            observation_noise=self.noise,
            gains=update.gains,
            residuals=update.residuals,
            perplexities_before=self.perplexities,
            perplexities_after=update.perplexities,
            process_noise=self.process_noise,
        )
