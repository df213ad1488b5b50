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
from numpy.typing import NDArray

from engram.core.planning.curation import normalise_words
from engram.core.ranking.ranking_weights import Floats
from engram.core.ranking.sufficiency import compute_standardisation, standardise_corpora

FEATURES = ("bias", "entities", "relevance")
AT_LEAST = 0.5
"""Probability from which on the pool suffices, where nothing else is said."""
STEPS = 1500
RATE = 0.02
DECAYS = (0.9, 0.999)
SMALLEST = 1e-8


@dataclass(frozen=True, slots=True)
class PoolVerdict:
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
    hidden: Floats = field(default_factory=lambda: np.zeros((0, len(FEATURES))))
    out: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        size = len(FEATURES)
        if self.direct.shape != (size,) or self.hidden.shape != (len(self.out), size) or self.out.ndim != 1:
            raise ValueError(f"the classifier has {size} weights, and {size} of each hidden unit")
        if not all(np.isfinite(part).all() for part in (self.direct, self.hidden, self.out)):
            raise ValueError("the classifier's weights must be finite")

    def probability(self, rows: Floats) -> Floats:
        """Return the probabilities (n,), in [0, 1], of pools with these features, (n, 3)."""
        linear = rows @ self.direct + np.tanh(rows @ self.hidden.T) @ self.out
        return np.exp(-np.logaddexp(0.0, -linear))


def compute_named_share(names: Sequence[str], pool: Sequence[str]) -> float:
    """Share of the question's names that sentences of the pool name, in [0, 1]; 1 for a question without any."""
    plain_names = {normalise_words(name) for name in names} - {""}
    plain_texts = [f" {normalise_words(text)} " for text in pool]
    return (
        sum(any(f" {name} " in text for text in plain_texts) for name in plain_names) / len(plain_names)
        if plain_names
        else 1.0
    )


def classify_pool(entities: float, relevance: float, network: Network) -> PoolVerdict:
    """Classify a pool by two features; the second is a cosine or a share, in [-1, 1]."""
    (probability,) = network.probability(np.array([[1.0, entities, relevance]]))
    return PoolVerdict(entities, relevance, float(probability))


def fit_network(
    corpora: Sequence[tuple[Floats, NDArray[np.bool_]]], units: int, ridge: float, seed: int = 0
) -> Network:
    """A network with hidden units, each corpus counting the same; the same for the same seed.

    ``STEPS`` steps of Adam (Kingma and Ba, 2015) over all rows at once, on the mean log-likelihood less ridge/2
    times the squared weights, biases left out. Features are standardised meanwhile.

    Args:
        corpora: of each the features, (n, 3), and whether the pools sufficed, (n,).
        units: above 0.
        ridge: at least 0.

    Raises:
        ValueError: every pool suffices, or none does; there are no units.
    """
    if units < 1:
        raise ValueError("a network has at least one hidden unit")
    rows, enough, share = standardise_corpora(corpora)
    to_standard = compute_standardisation(rows, share)
    standard, free = rows @ to_standard, np.array([0.0, 1.0, 1.0])
    parameters = np.random.default_rng(seed).normal(0.0, 0.5, units * (len(FEATURES) + 1) + 1)
    penalty = ridge * np.concatenate([np.tile(free, units), np.ones(units), [0.0]])
    mean, square = np.zeros_like(parameters), np.zeros_like(parameters)
    for step in range(1, STEPS + 1):
        gradient = _gradient(parameters, standard, enough, share) - penalty * parameters
        mean = DECAYS[0] * mean + (1.0 - DECAYS[0]) * gradient
        square = DECAYS[1] * square + (1.0 - DECAYS[1]) * gradient**2
        scale = np.sqrt(square / (1.0 - DECAYS[1] ** step)) + SMALLEST
        parameters = parameters + RATE * mean / (1.0 - DECAYS[0] ** step) / scale
    hidden, out, bias = _parts(parameters)
    # w·x is the same of standardised features x T and weights T^-1 w.
    return Network(np.array([bias, 0.0, 0.0]), hidden @ to_standard.T, out)


def _parts(parameters: Floats) -> tuple[Floats, Floats, float]:
    units = (len(parameters) - 1) // (len(FEATURES) + 1)
    hidden = parameters[: units * len(FEATURES)].reshape(units, len(FEATURES))
    return hidden, parameters[units * len(FEATURES) : -1], float(parameters[-1])


def _gradient(parameters: Floats, rows: Floats, enough: Floats, share: Floats) -> Floats:
    """Return the gradient of the mean log-likelihood."""
    hidden, out, bias = _parts(parameters)
    active = np.tanh(rows @ hidden.T)
    missed = share * (enough - np.exp(-np.logaddexp(0.0, -(active @ out + bias))))
    inward = (missed[:, None] * (1.0 - active**2) * out).T @ rows
    return np.concatenate([inward.ravel(), active.T @ missed, [missed.sum()]])
