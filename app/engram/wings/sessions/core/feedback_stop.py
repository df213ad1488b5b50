"""R-Feedback (RFM-RAG): whether an evidence pool suffices, by a classifier over two features.

- entities: share of the names of the question that the pool names (the paper's f1, syntactic).
- relevance: how much the pool is about the question (its f2), by a cross-encoder; or by the cosine of their
  embeddings, which is a deviation.

The paper has a feed-forward network of unsaid size: here it is a logistic model, p = 1 / (1 + exp(-w·x)). Either
feature only ever speaks for a pool, so that there is little more to learn. A pool that suffices is one that holds a
sentence of every passage of evidence; the paper does not say what its labels are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engram.core.ranking.weight_beliefs import Floats, sigmoid
from engram.core.text.words import normalise_words

STOP_FEATURES = ("bias", "entities", "relevance")
AT_LEAST = 0.5
"""Probability from which on the pool suffices, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class PoolClassification:
    """Classification of a pool: its features, and the probability that it suffices, in [0, 1]."""

    entities: float
    relevance: float
    probability: float


def compute_pool_probabilities(rows: Floats, weights: Floats) -> Floats:
    """Return the probabilities (n,), in [0, 1], of pools with features (n, 3), by weights (3,)."""
    return sigmoid(rows @ weights)


def compute_named_share(names: Sequence[str], pool: Sequence[str]) -> float:
    """Share of the question's names that sentences of the pool name, in [0, 1]; 1 for a question without any."""
    plain_names = {normalise_words(name) for name in names} - {""}
    plain_texts = [f" {normalise_words(text)} " for text in pool]
    return (
        sum(any(f" {name} " in text for text in plain_texts) for name in plain_names) / len(plain_names)
        if plain_names
        else 1.0
    )


def classify_pool(entities: float, relevance: float, weights: Floats) -> PoolClassification:
    """Classify a pool by two features; the second is a cosine or a share, in [-1, 1]."""
    (probability,) = compute_pool_probabilities(np.array([[1.0, entities, relevance]]), weights)
    return PoolClassification(entities, relevance, float(probability))
