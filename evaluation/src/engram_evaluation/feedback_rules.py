"""Rules by which other systems learn from thumbs: weights of passages, the same for every question.

Both are computed over the scores of the same retrieval without learning, scaled to [0, 1] over each question's
candidates, as these systems score. A thumb without citations speaks of all passages that were shown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

MOST_NOISE = 100.0
STEP = 1.0
"""Step of a thumb on a passage's weight, from 0 to ``MOST_NOISE``: RAGFlow's first rule (pull request 12689)."""
BUDGET = 0.1
"""Step of a thumb on all cited passages together by the later rule, split by their scores."""
MIDDLE = 0.5
PACE = 0.1
"""Share of the way that a thumb moves a passage's weight, which begins at ``MIDDLE``: Cognee's alpha."""
INFLUENCE = 0.1
"""Share of the weight in a score: what Cognee ships since June 2026 (pull request 3477)."""


@dataclass(frozen=True, slots=True)
class RatedAnswer:
    """A thumb under an answer.

    Attributes:
        question: id of the question.
        up: whether the thumb is up.
        answered: passages of the answer, best first.
        cited: those of them that the answer used; none where the frontend does not tell.
    """

    question: str
    up: bool
    answered: tuple[str, ...]
    cited: tuple[str, ...]

    @property
    def rated_passages(self) -> tuple[str, ...]:
        """The passages that a rule without positions blames or praises."""
        return self.cited or self.answered


Scores = Mapping[str, float]
"""Passage -> score in [0, 1]."""


class FeedbackRule(Protocol):
    """A rule that learns one number for each passage."""

    def learn(self, rated: RatedAnswer, scores: Scores) -> None:
        """Take in a thumb under an answer whose candidates had these scores."""

    def score(self, passage: str, score: float) -> float:
        """A passage's score with what was learned."""


class Votes:
    """RAGFlow's rule: each thumb adds a step to the passages' weights, and weights add to scores.

    Args:
        step: what each passage gets; None: ``BUDGET`` is split by score.
    """

    def __init__(self, step: float | None = STEP) -> None:
        self._step = step
        self._weights: dict[str, float] = {}

    def learn(self, rated: RatedAnswer, scores: Scores) -> None:
        """Add to each passage that is meant."""
        total = sum(scores.get(passage, 0.0) for passage in rated.rated_passages)
        for passage in rated.rated_passages:
            share = scores.get(passage, 0.0) / total if total > 0 else 1.0 / len(rated.rated_passages)
            step = BUDGET * share if self._step is None else self._step
            weight = self._weights.get(passage, 0.0) + (step if rated.up else -step)
            self._weights[passage] = min(max(weight, 0.0), MOST_NOISE)

    def score(self, passage: str, score: float) -> float:
        """The score and the weight."""
        return score + self._weights.get(passage, 0.0)


class MovingAverage:
    """Cognee's rule: a weight follows the thumbs, and scores are mixed with it."""

    def __init__(self) -> None:
        self._weights: dict[str, float] = {}

    def learn(self, rated: RatedAnswer, _scores: Scores) -> None:
        """Move the weight of each passage that is meant."""
        for passage in rated.rated_passages:
            weight = self._weights.get(passage, MIDDLE)
            self._weights[passage] = weight + PACE * (float(rated.up) - weight)

    def score(self, passage: str, score: float) -> float:
        """The mixture."""
        return (1.0 - INFLUENCE) * score + INFLUENCE * self._weights.get(passage, MIDDLE)


RULES: Mapping[str, Callable[[], FeedbackRule]] = {
    "one per chunk (RAGFlow)": Votes,
    "budget of 0.1 (RAGFlow, later)": lambda: Votes(None),
    "moving average (Cognee)": MovingAverage,
}
"""Name of a rule -> what makes one that has learned nothing."""


def scale_scores(scored: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Scores of a question's candidates, scaled so that the best has 1 and the last 0."""
    values = [score for _, score in scored]
    low, width = min(values, default=0.0), max(values, default=0.0) - min(values, default=0.0)
    return {passage: (score - low) / width if width > 0 else 1.0 for passage, score in scored}


def reorder_candidates(scored: Sequence[tuple[str, float]], rule: FeedbackRule) -> list[str]:
    """The candidates in the order that a rule gives them; of equal ones the better before stays first."""
    scores = scale_scores(scored)
    return sorted(scores, key=lambda passage: -rule.score(passage, scores[passage]))
