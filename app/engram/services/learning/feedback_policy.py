"""Feedback policy: the filter's constants and each judge's caps."""

from dataclasses import dataclass, replace

from engram.core.filter.constants import FilterConstants
from engram.storage.learning.judges import JudgeSettings


@dataclass(frozen=True, slots=True)
class FeedbackPolicy(FilterConstants):
    """Constants of the filter, and caps per judge and day (``core.filter.caps``)."""

    def adapt_to_judge(self, judge: JudgeSettings | None) -> "FeedbackPolicy":
        """Return the policy of a judge with settings of its own."""
        return self if judge is None else replace(self, **judge.list_own_settings())

    def reduce_for_rewording(self) -> "FeedbackPolicy":
        """Return the policy of a verdict that contradicts others on nearly the same question."""
        return replace(self, share=min(self.share, self.contested), comparisons=0)

    def observation_noise(self, target: int, confidence: float) -> float:
        """Observation noise of a verdict: R over the judge's confidence, which lies in (0, 1]."""
        return (self.positive if target else self.negative) / (confidence * self.standing)
