"""The coverage rule: evidence suffices if it has the question's content words. It asks no language model."""

import re
from collections.abc import Iterable
from functools import lru_cache

VOUCHED_ENOUGH = 0.5
"""P(same need) x net support from which on a verdict that claimed to name all evidence ends the hops."""

_WORD = re.compile(r"[^\W_]+")
_FUNCTION_WORDS = frozenset(
    """
    a about after all also an and any are as at be became been before being between both but by came can
    come did do does during each either first for from gave get give go had has have he her his how i if
    in into is it its last made make many me more most much name named of on one only or other our out
    over same she so some such than that the their them then there these they this those through to two
    under until up was we were what when where whether which while who whom whose why will with would
    you
    """.split()
)


@lru_cache(maxsize=1024)  # every hop asks again of what the hops before it found
def content_words(text: str) -> frozenset[str]:
    """The words of a text that say what it is about, lower-cased, without plural and possessive endings."""
    words = set(map(str.casefold, _WORD.findall(text))) - _FUNCTION_WORDS
    return frozenset(_stem(word) for word in words if len(word) > 1)


def coverage(question: str, evidence: Iterable[str]) -> float:
    """Share of the question's content words that the evidence names, in [0, 1]; 1 for a question without any."""
    question_words = content_words(question)
    if not question_words:
        return 1.0
    evidence_words = frozenset[str]().union(*(content_words(text) for text in evidence))
    return len(question_words & evidence_words) / len(question_words)


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
