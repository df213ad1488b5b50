"""Answers in words against accepted ones, as SQuAD's own script compares them (Rajpurkar et al., 2016)."""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise_answer(text: str) -> str:
    """Lower case, without punctuation and articles, words separated by one space."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def score_exact_match(answer: str, accepted: Sequence[str]) -> float:
    """1.0 if the answer is an accepted one, else 0.0."""
    return _find_best_score(lambda one: float(normalise_answer(answer) == normalise_answer(one)), accepted)


def token_f1(answer: str, accepted: Sequence[str]) -> float:
    """F1 of the words shared with the accepted answer that it is best by, in [0, 1]."""
    return _find_best_score(
        lambda one: _f1(normalise_answer(answer).split(), normalise_answer(one).split()), accepted
    )


def contains(answer: str, accepted: Sequence[str]) -> float:
    """1.0 if the words of an accepted answer stand in the answer in one piece (sub-EM), else 0.0.

    Whole words: "no" does not stand in "north", as it would where characters are compared.
    """
    words = f" {normalise_answer(answer)} "
    return _find_best_score(
        lambda one: float(bool(normalise_answer(one)) and f" {normalise_answer(one)} " in words), accepted
    )


def mark_answer(answer: str, accepted: Sequence[str]) -> dict[str, float]:
    """Score an answer by its words alone."""
    return {
        "em": score_exact_match(answer, accepted),
        "f1": token_f1(answer, accepted),
        "contains": contains(answer, accepted),
    }


def _find_best_score(score: Callable[[str], float], accepted: Sequence[str]) -> float:
    if not accepted:
        raise ValueError("there is no accepted answer")
    return max(score(one) for one in accepted)


def _f1(answer: Sequence[str], accepted: Sequence[str]) -> float:
    if not answer or not accepted:
        return float(answer == accepted)
    shared = sum((Counter(answer) & Counter(accepted)).values())
    return 2 * shared / (len(answer) + len(accepted))
