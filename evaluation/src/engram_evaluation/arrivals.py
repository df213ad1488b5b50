"""Questions as they come to a service in use: some often, most seldom."""

import random
from collections.abc import Sequence
from dataclasses import replace

from engram_evaluation.dataset import Question

ARRIVALS = 500
EXPONENT = 1.0
"""Zipf's: the question of rank r comes with weight 1 / r."""


def arrivals(questions: Sequence[Question], count: int, seed: int) -> list[Question]:
    """``count`` questions drawn with Zipf weights over a random ranking; ids are numbered to tell repeats apart."""
    order = random.Random(f"stream/{seed}")  # noqa: S311 - repeatable, not secret
    ranked = order.sample(questions, len(questions))
    weights = [1.0 / rank**EXPONENT for rank in range(1, len(ranked) + 1)]
    drawn = order.choices(ranked, weights, k=count)
    return [replace(question, id=f"{question.id}#{at}") for at, question in enumerate(drawn, start=1)]
