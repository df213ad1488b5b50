"""Feedback policy: the filter's constants and each judge's caps."""

from dataclasses import dataclass, replace

from engram.core.filter.constants import FilterConstants
from engram.storage.learning.judges import JudgeSettings


@dataclass(frozen=True, slots=True)
class FeedbackPolicy(FilterConstants):
    """Constants of the filter, and caps per judge and day (``core.filter.caps``).

    Attributes:
        fixed_gain: for ablations: moves every state by the same share whatever its perplexity.
        frozen: for ablations: scopes ("task", "time", "recall", "weights", "keys") that verdicts leave alone.
    """

    fixed_gain: float | None = None
    frozen: frozenset[str] = frozenset()

    def by(self, judge: JudgeSettings | None) -> "FeedbackPolicy":
        """Return the policy of a judge with settings of its own."""
        return self if judge is None else replace(self, **judge.own())

    def reworded(self) -> "FeedbackPolicy":
        """Return the policy of a verdict that contradicts others on nearly the same question."""
        return replace(self, share=min(self.share, self.contested), comparisons=0)

    @property
    def by_perplexity(self) -> float | None:
        """R over a state's perplexity at which K = π / (π + R) is the fixed gain; None where none is set."""
        return None if self.fixed_gain is None else (1.0 - self.fixed_gain) / self.fixed_gain

    def observation_noise(self, target: int, confidence: float) -> float:
        """Observation noise of a verdict: R over the judge's confidence, which lies in (0, 1]."""
        return (self.positive if target else self.negative) / (confidence * self.standing)
