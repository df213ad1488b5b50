"""Denied answers lower the probability for the same question, within each judge's cap."""

import math

import pytest

from engram.core.ranking.denied_answers import AnswerJudgement, compute_undenied_share

DENIED = AnswerJudgement(enough=False, noise=0.5, share=1.0)
CONFIRMED = AnswerJudgement(enough=True, noise=0.5, share=1.0)
CAPPED = AnswerJudgement(enough=False, noise=0.5, share=0.25)


@pytest.mark.parametrize(
    ("judgements", "share"),
    [
        ([], 1.0),
        ([DENIED], math.exp(-2)),
        ([DENIED, DENIED], math.exp(-4)),
        ([CONFIRMED], 1.0),
        ([CONFIRMED, DENIED], 1.0),
        ([CONFIRMED, CONFIRMED, DENIED], 1.0),
        ([CONFIRMED, DENIED, DENIED], math.exp(-2)),
        ([CAPPED], 0.75),
        ([CONFIRMED, CAPPED], 1.0),
    ],
)
def test_each_judge_counts_within_the_cap(judgements: list[AnswerJudgement], share: float) -> None:
    assert compute_undenied_share(judgements) == pytest.approx(share)
