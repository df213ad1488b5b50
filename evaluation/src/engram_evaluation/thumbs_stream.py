"""A stream of arrivals that now and then get a thumb, and what answers them meanwhile."""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from engram.services.verdict.verdict import NamedSentence, Verdict
from engram_evaluation.dataset import Question
from engram_evaluation.feedback_rules import FeedbackRule, RatedAnswer, reorder_candidates, scale_scores
from engram_evaluation.harness import Harness, QueryArm
from engram_evaluation.retrieval_metrics import SHOWN_PASSAGES

CITATION_RATE = 0.5
"""Share of the thumbs that come with what the answer cites."""
SAMPLED_ARRIVALS = 100
"""Arrivals at equal distances whose answers are measured, whoever rates what."""


@dataclass(frozen=True, slots=True)
class Thumb:
    """A thumb under the answer to an arrival.

    Attributes:
        wrong: whether it says the opposite of what the asker means.
        cites: whether the frontend tells what the answer cites.
    """

    wrong: bool
    cites: bool


@dataclass(frozen=True, slots=True)
class StreamOutcome:
    """Outcome of a stream.

    Attributes:
        sampled: position of an arrival -> the ranking that it was answered with, best first.
        lags: question that was answered wrongly without learning -> how many of its arrivals came before the first
            one with a relevant passage in front; None if there was none.
    """

    sampled: Mapping[int, Sequence[str]]
    lags: Mapping[str, int | None]


class Learner(Protocol):
    """Answers questions, and learns from thumbs under its answers."""

    def answer(self, question: Question) -> Sequence[str]:
        """The ranking of a question now, best first."""

    def rate(self, question: Question, rated: RatedAnswer, judge: str) -> None:
        """Take in a thumb under the answer that was given last."""


@dataclass(frozen=True, slots=True)
class RuleLearner:
    """A rule of another system over candidates with scores, which it reorders.

    Attributes:
        scored: question -> candidates with scores, best first.
    """

    rule: FeedbackRule
    scored: Mapping[str, Sequence[tuple[str, float]]]

    def answer(self, question: Question) -> Sequence[str]:
        """The candidates in the order that the rule gives them."""
        return reorder_candidates(self.scored[question.id], self.rule)

    def rate(self, question: Question, rated: RatedAnswer, _judge: str) -> None:
        """Have the rule learn."""
        self.rule.learn(rated, scale_scores(self.scored[question.id]))


@dataclass(slots=True)
class EngramLearner:
    """Engram with its memory read."""

    harness: Harness
    arm: QueryArm
    _query_id: UUID | None = field(default=None, init=False)

    def answer(self, question: Question) -> Sequence[str]:
        """Ask."""
        answer, result = self.harness.ask(question, self.arm)
        self._query_id = answer.query_id
        return result.ranking

    def rate(self, question: Question, rated: RatedAnswer, judge: str) -> None:
        """Send the rating.

        Raises:
            ValueError: nothing was answered yet.
        """
        if self._query_id is None:
            raise ValueError("an answer comes before its rating")
        verdict = Verdict(
            query_id=self._query_id,
            scope=self.harness.scope,
            partial=True,
            judge=judge,
            rating="up" if rated.up else "down",
            cited=[NamedSentence(passage_id=one) for one in rated.cited],
        )
        self.harness.give(question, verdict)


def draw_thumbs(count: int, rate: float, wrong_rate: float, seed: str) -> dict[int, Thumb]:
    """Position of an arrival -> its thumb; those of a lower rate are among those of a higher one."""
    thumbs = {}
    for at in range(count):
        draw = random.Random(f"{seed}/{at}")  # noqa: S311 - repeatable, not secret
        is_rated, is_wrong, cites = (draw.random() for _ in range(3))
        if is_rated < rate:
            thumbs[at] = Thumb(is_wrong < wrong_rate, cites < CITATION_RATE)
    return thumbs


def list_sampled(count: int) -> range:
    """Positions of the arrivals that are measured, of ``count``."""
    step = max(1, count // SAMPLED_ARRIVALS)
    return range(step // 2, count, step)


def rate_answer(question: Question, ranking: Sequence[str], thumb: Thumb) -> RatedAnswer:
    """The thumb as it is sent: up if evidence is among the first passages, unless it is wrong.

    The answer cites the evidence that was shown, or the first passage where there was none.
    """
    chosen = tuple(ranking[:SHOWN_PASSAGES])
    evidence = tuple(passage for passage in chosen if passage in question.relevant)
    cited = (evidence or chosen[:1]) if thumb.cites else ()
    return RatedAnswer(question.id, bool(evidence) != thumb.wrong, chosen, cited)


def follow(
    learner: Learner,
    arriving: Sequence[Question],
    thumbs: Mapping[int, Thumb],
    wrong: Collection[str],
    judge: str,
    step: Callable[[], None],
) -> StreamOutcome:
    """Answer a stream, and have the learner learn from each thumb.

    Asked are the arrivals that are sampled or get a thumb, and those of ``wrong`` questions that are not yet right
    and were rated since they were asked last. All others are taken to be answered as before.

    Args:
        wrong: questions whose first passage without learning is not relevant.
        judge: begins the name of each rater, of whom no two are the same.
        step: is called after each arrival.
    """
    positions = frozenset(list_sampled(len(arriving)))
    sampled: dict[int, Sequence[str]] = {}
    lags: dict[str, int | None] = dict.fromkeys(wrong)
    waited = dict.fromkeys(wrong, 0)
    rated_since: set[str] = set()
    for at, question in enumerate(arriving):
        is_waiting = question.id in lags and lags[question.id] is None
        if at in positions or at in thumbs or (is_waiting and question.id in rated_since):
            ranking = learner.answer(question)
            rated_since.discard(question.id)
            if is_waiting and set(ranking[:1]) & question.relevant:
                lags[question.id] = waited[question.id]
            if at in positions:
                sampled[at] = ranking
            if at in thumbs:
                learner.rate(question, rate_answer(question, ranking, thumbs[at]), f"{judge}-{at}")
                rated_since.add(question.id)
        if is_waiting:
            waited[question.id] += 1
        step()
    return StreamOutcome(sampled, lags)
