"""R-Feedback (RFM-RAG): whether an evidence pool suffices, by a classifier over two features.

- entities: share of the names of the question that the pool names (the paper's f1, syntactic).
- relevance: how much the pool is about the question (its f2), by a cross-encoder; or by the cosine of their
  embeddings, which is a deviation.

The paper has a feed-forward network of unsaid size. Over two features a logistic model, p = 1 / (1 + exp(-w·x)),
is what there is to learn: either feature only ever speaks for a pool. A pool that suffices is one that holds a
sentence of every passage of evidence; the paper does not say what its labels are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.core.belief import Floats
from app.core.curation import words

FEATURES = ("bias", "entities", "relevance")
AT_LEAST = 0.5
"""Probability from which on the pool suffices, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the classifier says of a pool: its features, and the probability that it suffices, in [0, 1]."""

    entities: float
    relevance: float
    probability: float


def named(names: Sequence[str], pool: Sequence[str]) -> float:
    """Share of the question's names that sentences of the pool name, in [0, 1]; 1 for a question without any."""
    wanted = {" ".join(words(name)) for name in names} - {""}
    said = [f" {' '.join(words(text))} " for text in pool]
    return sum(any(f" {name} " in text for text in said) for name in wanted) / len(wanted) if wanted else 1.0


def told(entities: float, relevance: float, weights: Floats) -> Told:
    """What weights, (3,), make of the two features, of which the second is a cosine or a share, in [-1, 1].

    Raises:
        ValueError: there are not as many weights as features.
    """
    if weights.shape != (len(FEATURES),):
        raise ValueError(f"the classifier has {len(FEATURES)} weights")
    linear = float(weights @ np.array([1.0, entities, relevance]))
    return Told(entities, relevance, float(np.exp(-np.logaddexp(0.0, -linear))))
