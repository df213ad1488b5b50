"""How far verdicts move what is learned: the filter's constants and each judge's caps."""

from dataclasses import dataclass, replace

from app.storage.learning.judges import JudgeSettings

CONSTANTS = ("positive", "negative", "process", "share", "contested", "comparisons")


@dataclass(frozen=True, slots=True)
class Noise:
    """How far verdicts move what is learned: the filter's constants, and caps per judge and day (``core.caps``).

    Attributes:
        positive, negative, process: R_pos, R_neg and Q (GAM-RAG, Appendix C).
        share: of the distance to what its verdicts say, how much a judge may close of one memory, in [0, 1].
        contested: the same where its verdict goes against what other judges said, in [0, 1].
        comparisons: verdicts of a judge that may teach the ranking; None: all.
        fixed_gain: for ablations: moves every state by the same share whatever its perplexity.
        frozen: for ablations: scopes ("task", "time", "recall", "weights", "keys") that verdicts leave alone.
    """

    positive: float
    negative: float
    process: float
    share: float = 1.0
    contested: float = 1.0
    comparisons: int | None = None
    fixed_gain: float | None = None
    frozen: frozenset[str] = frozenset()

    def by(self, judge: JudgeSettings | None) -> "Noise":
        """That of a judge for which some of it is set otherwise."""
        return self if judge is None else replace(self, **judge.said())

    def constants(self) -> dict[str, float | int | None]:
        """What a replay has to know of it."""
        return {name: getattr(self, name) for name in CONSTANTS}

    def of(self, target: int, confidence: float, perplexity: float = 1.0) -> float:
        """Observation noise of a verdict: R over the judge's confidence, which lies in (0, 1]."""
        if self.fixed_gain is not None:  # the R at which K = π / (π + R) is the fixed gain
            return perplexity * (1.0 - self.fixed_gain) / self.fixed_gain
        return (self.positive if target else self.negative) / confidence
