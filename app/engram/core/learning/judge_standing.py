"""Weight of a new judge: mean of a Beta distribution over its agreements with established judges.

The prior is one agreement in five. What both judges reject does not count, since most of any answer is rejected.
From a mean of ``ESTABLISHED`` on a judge counts as every other.
"""

from dataclasses import dataclass

PRIOR_AGREED, PRIOR_DISAGREED = 1.0, 4.0
"""Of a judge of which nothing is known."""
ESTABLISHED = 0.75
"""The mean from which on a judge is no longer new: after eleven agreements, if it never disagreed."""
FULL_WEIGHT = 1.0
NEWCOMERS = ""
"""All new judges together, as caps know them: no judge has this name."""


@dataclass(frozen=True, slots=True)
class JudgeStanding:
    """Counts of a judge's agreements and disagreements, each at least 0."""

    agreed: int = 0
    disagreed: int = 0

    @property
    def mean(self) -> float:
        """Mean of the Beta distribution, in (0, 1)."""
        hits = PRIOR_AGREED + self.agreed
        return hits / (hits + PRIOR_DISAGREED + self.disagreed)

    @property
    def weight(self) -> float:
        """By which its verdicts count, in (0, 1]: they are the less reliable the lower it is."""
        return FULL_WEIGHT if self.mean >= ESTABLISHED else self.mean
