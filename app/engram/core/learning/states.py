"""States that verdicts move, the events that move them, and the audit of each move.

The core's states are numbers: how surely a sentence supports a question. One engine (``observations``) moves them,
and those of wings, for workers, replays and explanations.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from engram.core.learning import kalman
from engram.core.learning.caps import UNTOUCHED, GainBudget, TextStatements
from engram.core.learning.kalman import Floats

Vector = NDArray[np.float32]

TASK = "task"
TIME = "time"
CHANNELS = (TASK, TIME)
"""Channels of a sentence's memory."""
MARKS = " ?!.,;:…\"'“”‘’«»¿¡？！。"
"""Characters that mean nothing at the ends of a question."""
RECALL = "recall"
"""Channel of a question's supports in the audit."""
AUDITED = (*CHANNELS, RECALL)
"""Channels that have audit rows."""
SUPPORT_BEFORE_VERDICTS = 0.0
"""Support of a question by a sentence that is believed before any verdict on both, in [0, 1]."""
PERPLEXITY_BEFORE_VERDICTS = 1.0
"""Perplexity before any verdict. It is 1, as ``weigh_verdicts`` has it."""
LEAST_LIKENESS = 1e-9
"""Likeness of a text that was revised often, at least: observation noise is divided by it."""


@dataclass(frozen=True, slots=True)
class Support:
    """Support of a question by a sentence. The defaults are those before any verdict.

    Attributes:
        support: how surely the sentence supports the question, in [0, 1].
        perplexity: how little is known of that, in [0, 1].
        acceptance: how surely judges accept the sentence, in [0, 1]; see ``sentence_acceptance``.
        update_count: how many verdicts have moved it.
        complete: whether the last verdict claimed to name all evidence.
        gain_budget: budgets of the judges on the last day.
        statements: each judge's last word on each text that the sentence had.
        answered: lower bound for the sufficiency of an answer that this evidence leads, in [0, 1].
        sufficiency: the same for one that all evidence leads; see ``sufficiency_memory``.
    """

    question_id: int
    sentence_id: int
    support: float = SUPPORT_BEFORE_VERDICTS
    perplexity: float = PERPLEXITY_BEFORE_VERDICTS
    acceptance: float = SUPPORT_BEFORE_VERDICTS
    update_count: int = 0
    complete: bool = False
    gain_budget: GainBudget = UNTOUCHED
    statements: TextStatements = ()
    answered: float = 0.0
    sufficiency: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A verdict with the constants by which it is applied, without its sentences.

    Attributes:
        question_id: question that the verdict teaches.
        judge, day: its judge (``NEWCOMERS`` for a new one), and its day (UTC), as 2026-05-01.
        share, contested_share: caps on the share of the distance that the judge's verdicts of a day may close of
            one state, in [0, 1]; the second for a verdict that contradicts other judges.
        process_noise: Q of GAM-RAG, Eq. 13, in (0, 1).
        noise: R of Eq. 11 of a rejection, and of a support, that the verdict is certain of, above 0.
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
    noise: tuple[float, float]
    complete: bool
    sufficiency: float | None = None


@dataclass(frozen=True, slots=True)
class JudgedText:
    """The text of a sentence that a verdict judged.

    Attributes:
        revision: how often the sentence had been revised when it was shown.
        likeness: how alike the sentence is to that text now, in (0, 1].
    """

    revision: int = 0
    likeness: float = 1.0


@dataclass(frozen=True, slots=True)
class SentenceRevisions:
    """Revisions of a sentence, in order.

    Attributes:
        moments: when each was made.
        likeness: how alike the texts before and after each are, in (0, 1].
    """

    moments: Sequence[datetime]
    likeness: Sequence[float]

    def find_text(self, answered_at: datetime) -> JudgedText:
        """Find the text that an answer of this moment showed."""
        revision = sum(moment <= answered_at for moment in self.moments)
        return JudgedText(revision, measure_likeness(self.likeness, revision))


def measure_likeness(likeness: Sequence[float], revision: int) -> float:
    """Measure how alike a sentence is now to its text after so many revisions, in (0, 1].

    Args:
        likeness: of the texts before and after each revision.
    """
    return max(math.prod(likeness[revision:]), LEAST_LIKENESS)


@dataclass(frozen=True, slots=True)
class Audit:
    """Effect of one event on one state, with its noises R and Q of GAM-RAG, Eqs. 11 and 13.

    ``revision`` and ``likeness``: of the text that was judged, see ``JudgedText``. R is divided by the likeness.
    """

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
    revision: int = 0
    likeness: float = 1.0

    @property
    def capped(self) -> bool:
        """Whether a cap held the gain below that of Eq. 11."""
        free = kalman.kalman_gain(
            np.array([self.perplexity_before]), np.array([self.observation_noise / self.likeness])
        )
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
    revisions: NDArray[np.int64]
    likeness: Floats

    @classmethod
    def build_empty(cls) -> "AuditRows":
        """No row."""
        ids, numbers = np.zeros(0, dtype=np.int64), np.zeros(0)
        return cls(ids, ids, ids, ids, numbers, numbers, numbers, numbers, numbers, numbers, ids, numbers)

    @classmethod
    def from_rows(cls, rows: Sequence[Audit]) -> "AuditRows":
        """Convert audits to columns."""
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
            np.array([row.revision for row in rows], dtype=np.int64),
            np.array([row.likeness for row in rows], dtype=np.float64),
        )

    @classmethod
    def concatenate(cls, parts: Sequence["AuditRows"]) -> "AuditRows":
        """All rows of the parts, one part after the other."""
        if not parts:
            return cls.build_empty()
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
            self.revisions,
            self.likeness,
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
    """Hash a question for its supports. White space, case and marks at the ends make no difference."""
    words = " ".join(question.casefold().split())
    return hashlib.sha256((words.strip(MARKS) or words).encode()).digest()
