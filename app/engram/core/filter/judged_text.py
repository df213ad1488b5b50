"""Which text of a sentence a verdict judged, where the text was revised since."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

LEAST_LIKENESS = 1e-9
"""Likeness of a text that was revised often, at least: observation noise is divided by it."""


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
