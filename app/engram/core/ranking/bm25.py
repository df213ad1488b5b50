"""BM25: how much a term that a question and a passage share speaks for the passage.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), in Lucene's form: an idf
that is never negative, and no constant factor k1 + 1, which changes no ranking (Kamphuis et al.,
"Which BM25 Do You Mean?", 2020). A passage's score for a question is the sum over the question's terms of

    weight of the term in the question x inverse_document_frequency x f / (f + k1 (1 - b + b length / mean length))

with f how often the passage has the term; storage computes the last factor.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

K1 = 1.5
"""How fast repetitions of a term stop to count; 0: at once."""
B = 0.75
"""How far a passage's length counts against it: 0 not at all, 1 in proportion."""


def expand_query(question: Mapping[str, float], units: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The terms of an expanded query, each with its weight: question and expansions weigh the same.

    The question's terms keep their weights. All units together weigh as much as the question, each the same share
    of that whatever its length, as in ``evolution.expand_query``: ten units do not drown what was asked, nor does a
    long one. For a question without terms the units weigh as much as for one with a single term.

    Args:
        question: term -> how often the question has it, > 0.
        units: the same of each expansion unit; one without terms counts for nothing.
    """
    telling = [terms for terms in units if terms]
    mass = sum(question.values()) or 1.0
    weights = {term: float(frequency) for term, frequency in question.items()}
    for terms in telling:
        size = sum(terms.values())
        for term, frequency in terms.items():
            weights[term] = weights.get(term, 0.0) + mass * frequency / (size * len(telling))
    return weights


def inverse_document_frequency(passages: int, containing: ArrayLike) -> NDArray[np.float64]:
    """ln(1 + (N - n + 1/2) / (n + 1/2)): how much a term tells, > 0.

    Args:
        passages: N, all passages of the collection.
        containing: n, those that hold the term, 1 <= n <= N; any shape.
    """
    n = np.asarray(containing, dtype=np.float64)
    if np.any(n < 0) or np.any(n > passages):
        raise ValueError("a term cannot be in fewer than 0 or more than all passages")
    return np.log1p((passages - n + 0.5) / (n + 0.5))
