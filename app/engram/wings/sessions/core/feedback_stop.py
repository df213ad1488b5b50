"""R-Feedback (RFM-RAG): whether an evidence pool suffices, by a classifier over two features.

- entities: share of the names of the question that the pool names (the paper's f1, syntactic).
- relevance: how much the pool is about the question (its f2), by a cross-encoder; or by the cosine of their
  embeddings, which is a deviation.

The paper has a feed-forward network of unsaid size: here one hidden layer of tanh units. Without units it is a
logistic model, p = 1 / (1 + exp(-w·x)), which is what we ship: either feature only ever speaks for a pool, so that
there is little more to learn. A pool that suffices is one that holds a sentence of every passage of evidence; the
paper does not say what its labels are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

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


@dataclass(frozen=True, slots=True)
class Network:
    """p = 1 / (1 + exp(-(direct·x + out·tanh(hidden x)))), where x is (1, entities, relevance).

    Attributes:
        direct: (3,); of a network with hidden units only its first, the bias of the output, is not 0.
        hidden: (h, 3); none for a logistic model.
        out: (h,).

    Raises:
        ValueError: the shapes do not go together, or a number is not finite.
    """

    direct: Floats
    hidden: Floats = field(default_factory=lambda: np.zeros((0, len(STOP_FEATURES))))
    out: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        size = len(STOP_FEATURES)
        if self.direct.shape != (size,) or self.hidden.shape != (len(self.out), size) or self.out.ndim != 1:
            raise ValueError(f"the classifier has {size} weights, and {size} of each hidden unit")
        if not all(np.isfinite(part).all() for part in (self.direct, self.hidden, self.out)):
            raise ValueError("the classifier's weights must be finite")

    def probability(self, rows: Floats) -> Floats:
        """Return the probabilities (n,), in [0, 1], of pools with these features, (n, 3)."""
        linear = rows @ self.direct + np.tanh(rows @ self.hidden.T) @ self.out
        return sigmoid(linear)


def compute_named_share(names: Sequence[str], pool: Sequence[str]) -> float:
    """Share of the question's names that sentences of the pool name, in [0, 1]; 1 for a question without any."""
    plain_names = {normalise_words(name) for name in names} - {""}
    plain_texts = [f" {normalise_words(text)} " for text in pool]
    return (
        sum(any(f" {name} " in text for text in plain_texts) for name in plain_names) / len(plain_names)
        if plain_names
        else 1.0
    )


def classify_pool(entities: float, relevance: float, network: Network) -> PoolClassification:
    """Classify a pool by two features; the second is a cosine or a share, in [-1, 1]."""
    (probability,) = network.probability(np.array([[1.0, entities, relevance]]))
    return PoolClassification(entities, relevance, float(probability))
