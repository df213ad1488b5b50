"""By what a verdict is applied: the noises of the filter, and the caps of its judge."""

from dataclasses import dataclass, replace
from typing import Self

from engram.core.learning.judge_standing import FULL_WEIGHT, NEWCOMERS, JudgeStanding


@dataclass(frozen=True, slots=True)
class NoiseAndCaps:
    """Kept with every applied verdict, so that later settings leave the past alone.

    Attributes:
        positive, negative, process: R_pos, R_neg and Q (GAM-RAG, Appendix C).
        share: daily cap: largest total move of one memory per judge and day, as a share of the distance to the
            verdicts, in [0, 1].
        contested: the same for a verdict that contradicts other judges, in [0, 1].
        weight_verdicts: limit on a judge's verdicts of a day that teach weights; None: no limit.
        standing: weight of the judge, in (0, 1]; below 1 it is new (see ``judge_standing``).
        newcomers: the daily cap of all new judges together, in [0, 1].
    """

    positive: float
    negative: float
    process: float
    share: float = 1.0
    contested: float = 1.0
    weight_verdicts: int | None = None
    standing: float = 1.0
    newcomers: float = 1.0

    def adapt_to_standing(self, standing: JudgeStanding) -> Self:
        """Return the constants of a judge without standing.

        New judges share their caps and teach no weights.
        """
        if standing.weight == FULL_WEIGHT:
            return self
        return replace(self, standing=standing.weight, share=min(self.share, self.newcomers), weight_verdicts=0)

    def reduce_for_rewording(self) -> Self:
        """Return the constants of a verdict that contradicts others on nearly the same question."""
        return replace(self, share=min(self.share, self.contested), weight_verdicts=0)

    def observation_noise(self, target: int, confidence: float) -> float:
        """Observation noise of a verdict: R / (confidence · standing), both in (0, 1]."""
        return (self.positive if target else self.negative) / (confidence * self.standing)

    def name_for_caps(self, judge: str) -> str:
        """Return the judge's name as caps know it: all new judges count as one."""
        return NEWCOMERS if self.is_new else judge

    @property
    def is_new(self) -> bool:
        """Whether the judge is."""
        return self.standing < FULL_WEIGHT
