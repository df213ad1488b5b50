"""Rewards of a reasoning path: of each step, of its end, and of the whole (State-Aware RAG, Eqs. 3-5).

The paper has a model grade each criterion from poor to excellent and says neither how many grades there are nor
what they are worth. Ours are four, equally far apart, and criteria count the same: any other spacing would be a
guess at how a judge uses its words. Where gold evidence is known, both rewards have a form without any model.
"""

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Literal, get_args

Grade = Literal["poor", "fair", "good", "excellent"]
GRADES: tuple[Grade, ...] = get_args(Grade)
"""Worst first; worth 0, 1/3, 2/3 and 1."""
PATH = ("relevance", "sufficiency", "coherence", "factuality")
"""What a step is graded by: is what it kept about the sub-question, is it enough for it, does the answer follow
from the steps before, is it what the kept sentences say."""
OUTCOME = ("coherence", "completeness", "consistency", "agreement")
"""What a path is graded by: does one step follow from another, is none missing, does none contradict another, and
is its answer the accepted one; the last where an accepted answer is known."""
FORMAT_WEIGHT = 0.1
"""Lambda of the reward of an agent's play (GRAM, Eq. 6), as published."""
OUTCOME_WEIGHT = 2.0
"""Lambda of Eq. 5, as published."""


def compute_grade_value(grade: str) -> float:
    """Return the value of a grade, in [0, 1].

    Raises:
        ValueError: it is none of ``GRADES``.
    """
    if grade not in GRADES:
        raise ValueError(f"a grade is one of {', '.join(GRADES)}, not {grade!r}")
    return GRADES.index(grade) / (len(GRADES) - 1)


def path_reward(grades: Mapping[str, str]) -> float:
    """Reward of one step, R_p of Eq. 3, in [0, 1]: the mean worth over ``PATH``.

    Raises:
        ValueError: a criterion is missing or unknown, or a grade is.
    """
    return _mean(grades, PATH)


def outcome_reward(grades: Mapping[str, str]) -> float:
    """Reward of a finished path, R_o of Eq. 4, in [0, 1]: the mean worth over ``OUTCOME``, or all but agreement.

    Raises:
        ValueError: a criterion is missing or unknown, or a grade is.
    """
    return _mean(grades, OUTCOME if "agreement" in grades else OUTCOME[:-1])


def objective(steps: Sequence[float], outcome: float, weight: float = OUTCOME_WEIGHT) -> float:
    """Compute the training objective of an extractor (GRAM, Eq.

    5): 1/(n-1) sum R_p + weight R_o, in [0, 1 + weight].

    Args:
        steps: R_p of the n - 1 steps before the conclusion. Of a path that concludes at once, which the equation
            leaves undefined, that term is 0: it kept nothing.
        outcome: R_o.

    Raises:
        ValueError: a reward is not in [0, 1].
    """
    if not all(0.0 <= reward <= 1.0 for reward in (*steps, outcome)):
        raise ValueError("a reward lies in [0, 1]")
    return (math.fsum(steps) / len(steps) if steps else 0.0) + weight * outcome


def share_held(gold: Collection[Hashable], memory: Collection[Hashable]) -> float:
    """The share of the gold sentences that memory holds, in [0, 1].

    Raises:
        ValueError: there is no gold sentence.
    """
    if not gold:
        raise ValueError("there is no gold sentence")
    memory_set = set(memory)
    return sum(one in memory_set for one in set(gold)) / len(set(gold))


def precision(gold: Collection[Hashable], memory: Collection[Hashable]) -> float:
    """The share of what memory holds that is gold, in [0, 1]; 0 of an empty memory."""
    return len(set(memory) & set(gold)) / len(set(memory)) if memory else 0.0


def path_reward_by_gold(gold: Collection[Hashable], memory: Collection[Hashable]) -> float:
    """R_p without a model, in [0, 1]: the mean of the share of gold that memory holds and of memory's precision.

    ``memory`` is that after the step. The first stands for sufficiency, the second for relevance. Coherence and
    factuality are of the answer in words, which gold sentences say nothing of: ``outcome_reward_by_gold`` marks it.

    Raises:
        ValueError: there is no gold sentence.
    """
    return (share_held(gold, memory) + precision(gold, memory)) / 2


def outcome_reward_by_gold(answer_f1: float, gold_share: float, weight: float = 0.5) -> float:
    """R_o without a model, in [0, 1]: the answer's token F1, and how much of the gold evidence was found.

    Args:
        answer_f1: with the accepted answer that it is best by: agreement.
        gold_share: ``share_held`` at the end: completeness.
        weight: of the first, in [0, 1].

    Raises:
        ValueError: an argument is not in [0, 1].
    """
    if not all(0.0 <= value <= 1.0 for value in (answer_f1, gold_share, weight)):
        raise ValueError("F1, share and weight lie in [0, 1]")
    return weight * answer_f1 + (1.0 - weight) * gold_share


def _mean(grades: Mapping[str, str], criteria: Sequence[str]) -> float:
    if set(grades) != set(criteria):
        raise ValueError(f"what is graded is {', '.join(criteria)}, not {', '.join(sorted(grades)) or 'nothing'}")
    return math.fsum(compute_grade_value(grades[criterion]) for criterion in criteria) / len(criteria)


def play_reward(f1: float, valid: bool, weight: float = FORMAT_WEIGHT) -> float:
    """Return the reward of a play: R = R_outcome + lambda R_process (GRAM, Eqs. 6 and 7), in [0, 1 + weight].

    Args:
        f1: token F1 of the answer against the best accepted one, in [0, 1]; 0 where there is none.
        valid: whether every turn was one. The paper has one indicator for a trajectory and does not say how turns
            make it up; all of them is the strict reading.
        weight: lambda.

    Raises:
        ValueError: f1 is not in [0, 1].
    """
    if not 0.0 <= f1 <= 1.0:
        raise ValueError(f"an F1 of {f1} is not in [0, 1]")
    return f1 + weight * valid
