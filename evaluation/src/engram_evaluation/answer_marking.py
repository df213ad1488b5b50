"""Answers in words against accepted ones, as SQuAD's own script compares them (Rajpurkar et al., 2016)."""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(text: str) -> str:
    """Lower case, without punctuation and articles, words separated by one space."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def exact(answer: str, accepted: Sequence[str]) -> float:
    """1.0 if the answer is an accepted one, else 0.0."""
    return _best(lambda one: float(normalised(answer) == normalised(one)), accepted)


def token_f1(answer: str, accepted: Sequence[str]) -> float:
    """F1 of the words shared with the accepted answer that it is best by, in [0, 1]."""
    return _best(lambda one: _f1(normalised(answer).split(), normalised(one).split()), accepted)


def contains(answer: str, accepted: Sequence[str]) -> float:
    """1.0 if the words of an accepted answer stand in the answer in one piece (sub-EM), else 0.0.

    Whole words: "no" does not stand in "north", as it would where characters are compared.
    """
    words = f" {normalised(answer)} "
    return _best(lambda one: float(bool(normalised(one)) and f" {normalised(one)} " in words), accepted)


def _best(score: Callable[[str], float], accepted: Sequence[str]) -> float:
    if not accepted:
        raise ValueError("there is no accepted answer")
    return max(score(one) for one in accepted)


def _f1(answer: Sequence[str], accepted: Sequence[str]) -> float:
    if not answer or not accepted:
        return float(answer == accepted)
    shared = sum((Counter(answer) & Counter(accepted)).values())
    return 2 * shared / (len(answer) + len(accepted))
