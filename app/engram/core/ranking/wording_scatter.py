"""Scatter of wordings: the directions in which questions with the same need differ.

The differences of judged questions with common evidence show where wording alone moves a question's vector. In the
vote of judged questions, nearness weighs these directions less. Let x and y be vectors less the centre, and C the
sum of the outer products of all differences:

    cos(x, y) = x' M⁻¹ y / sqrt(x' M⁻¹ x · y' M⁻¹ y)     M = C + PRIOR_DIFFERENCES · (mean squared difference) · I

This is within-class covariance normalisation (Hatch, Kajarekar and Stolcke 2006, "Within-Class Covariance
Normalization for SVM-based Speaker Recognition", Interspeech, section 3), shrunk towards the plain cosine. Only the
``RANK`` directions u of largest scatter count by themselves, others by their mean. With m the scatter along u, and
c that along any other direction, both with the prior,

    x' M⁻¹ y  ∝  x·y - p·q          p = sqrt(1 - c/m) · (u·x) for each direction, q the same of y

so that a question needs no more than its coordinates p beside its plain cosine. Without differences, p is 0.

What a vote is worth is learned by leaving questions out, so their own differences are left out as well. Else the
same pairs would teach the scatter and be judged by it, and votes would promise too much.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.question_priors import PRIOR_DIFFERENCES
from engram.core.ranking.question_units import Floats, QuestionUnits, Vectors, fisher_z

RANK = 32
"""Directions whose scatter counts by itself."""
OVERSAMPLING = 8
ITERATIONS = 4
SMALLEST_SHARE = 1e-10
"""Of the largest squared length; below it, a direction is rounding."""


@dataclass(frozen=True, slots=True)
class PlacedQuestions:
    """Places of questions' vectors in a collection.

    Attributes:
        along: inner products of the vectors with the centre of the passages, (n,).
        coordinates: p of each vector, (n, r).
    """

    along: Floats
    coordinates: NDArray[np.float16]

    def select(self, rows: Sequence[int]) -> "PlacedQuestions":
        """Select questions by their rows."""
        return PlacedQuestions(self.along[rows], self.coordinates[rows])

    def join(self, added: "PlacedQuestions") -> "PlacedQuestions":
        """Return these questions, then the others."""
        return PlacedQuestions(
            np.concatenate([self.along, added.along]), np.concatenate([self.coordinates, added.coordinates])
        )


@dataclass(frozen=True, slots=True)
class WordingScatter:
    """Directions in which questions with the same need differ.

    Attributes:
        directions: u · sqrt(1 - c/m) of each, (d, r); r is 0 without differences.
        shift: what leaving them out adds to the mean of atanh of the cosine of random pairs.
        stretch: what it multiplies its deviation by.
    """

    directions: NDArray[np.float16]
    shift: float = 0.0
    stretch: float = 1.0

    def place(self, centre: Floats, vectors: Vectors) -> PlacedQuestions:
        """Place unit vectors, (n, d)."""
        precise = vectors.astype(np.float64).reshape(len(vectors), len(centre))
        coordinates = (precise - centre) @ self.directions.astype(np.float64)
        return PlacedQuestions(precise @ centre, coordinates.astype(np.float16))

    def standardise(
        self, units: QuestionUnits, cosines: Floats, one: PlacedQuestions, other: PlacedQuestions
    ) -> Floats:
        """Nearness of pairs of questions in standard units, without these directions, (n,).

        Args:
            units: of plain nearness.
            cosines: plain ones of each pair, (n,).
        """
        p, q = one.coordinates.astype(np.float64), other.coordinates.astype(np.float64)
        # Centred inner products and squared lengths lose p·q, p·p and q·q by these arguments.
        return self.fit(units).standardise(
            cosines + ((p - q) ** 2).sum(axis=1) / 2.0,
            one.along + (p * p).sum(axis=1) / 2.0,
            other.along + (q * q).sum(axis=1) / 2.0,
        )

    def fit(self, units: QuestionUnits) -> QuestionUnits:
        """Fit the units of plain nearness to cosines without these directions."""
        return replace(units, mean=units.mean + self.shift, deviation=units.deviation * self.stretch)


class WordingDifferences:
    """Differences of judged questions with common evidence."""

    def __init__(self, vectors: Floats, pairs: NDArray[np.intp]) -> None:
        """Find the directions of largest scatter.

        Args:
            vectors: of the questions, less the centre, (n, d).
            pairs: places of two questions with common evidence each, (m, 2).
        """
        self._vectors, self._pairs = vectors, pairs
        differences = vectors[pairs[:, 0]] - vectors[pairs[:, 1]]
        self._sizes = (differences * differences).sum(axis=1)
        self._total = float(self._sizes.sum())
        self._others = max(vectors.shape[1] - RANK, 1)
        rank = min(RANK, vectors.shape[1] - 1) if self._total > 0 else 0
        self._prior = PRIOR_DIFFERENCES * self._total / max(len(pairs), 1)
        self._directions = _find_directions(differences, rank)
        self._differences = differences @ self._directions
        self._gram = self._differences.T @ self._differences

    def learn_scatter(self, sample: NDArray[np.intp]) -> WordingScatter:
        """Learn the scatter from all differences.

        Args:
            sample: places of the questions whose pairs stand for random pairs.
        """
        along = (self._differences**2).sum(axis=0)
        scatter, other = along + self._prior, self._compute_other(self._total, float(along.sum()))
        shrinkage = np.sqrt(np.maximum(1.0 - other / scatter, 0.0))
        directions = (self._directions * shrinkage).astype(np.float16)
        if not directions.shape[1] or len(sample) < 2:
            return WordingScatter(directions)
        vectors = self._vectors[sample]
        coordinates = vectors @ directions.astype(np.float64)
        products = vectors @ vectors.T
        plain, without = (_list_pairs(one) for one in (products, products - coordinates @ coordinates.T))
        stretch = float(without.std() / plain.std()) if plain.std() > 0 else 1.0
        return WordingScatter(directions, float(without.mean() - plain.mean()), stretch)

    def measure_left_out(
        self,
        scatter: WordingScatter,
        units: QuestionUnits,
        rows: NDArray[np.intp],
        neighbours: NDArray[np.intp],
    ) -> Floats:
        """Nearness of pairs in the units of ``scatter``, without the differences of the first question, (n,).

        The directions stay those of all differences.

        Args:
            rows: place of the question of each pair that is left out, (n,).
            neighbours: place of the other one, (n,).
        """
        left_out, first = np.unique(rows, return_inverse=True)
        losses = self._compute_losses(left_out)
        coordinates = self._vectors @ self._directions
        lengths = (self._vectors * self._vectors).sum(axis=1)
        cosines = np.zeros(len(rows))
        for at, (row, lost) in enumerate(zip(left_out.tolist(), losses, strict=True)):
            places = np.flatnonzero(first == at)
            neighbour_rows = neighbours[places]
            own, near = coordinates[row], coordinates[neighbour_rows]
            size = lengths[row] - own @ lost @ own
            sizes = lengths[neighbour_rows] - (near @ lost * near).sum(axis=1)
            products = self._vectors[neighbour_rows] @ self._vectors[row] - near @ (lost @ own)
            cosines[places] = products / np.sqrt(np.maximum(size * sizes, 1e-12))
        fitted = scatter.fit(units)
        return np.asarray((fisher_z(cosines) - fitted.mean) / fitted.deviation)

    def _compute_losses(self, left_out: NDArray[np.intp]) -> Floats:
        """Matrices K for which x·y - (U'x)' K (U'y) is the inner product without one question, (n, r, r)."""
        identity = np.eye(self._directions.shape[1])
        scatters, others = np.empty((len(left_out), *identity.shape)), np.empty(len(left_out))
        for at, row in enumerate(left_out.tolist()):
            own_pairs = np.flatnonzero((self._pairs == row).any(axis=1))
            scatter = self._gram - self._differences[own_pairs].T @ self._differences[own_pairs]
            scatters[at] = scatter + self._prior * identity
            others[at] = self._compute_other(
                self._total - float(self._sizes[own_pairs].sum()), float(np.trace(scatter))
            )
        return np.asarray(identity - others[:, None, None] * np.linalg.inv(scatters))

    def _compute_other(self, total: float, along: float) -> float:
        """Scatter along any direction that does not count by itself, with the prior."""
        return float(max(total - along, 0.0) / self._others + self._prior)


def _find_directions(differences: Floats, rank: int) -> Floats:
    """Find the orthogonal directions of largest scatter of differences (m, d), up to ``rank``, (d, r).

    By subspace iteration (Halko, Martinsson and Tropp 2011, "Finding Structure with Randomness", algorithm 4.4),
    whose cost grows with d, not with its cube. Its start is the same each time.
    """
    dimension = differences.shape[1]
    width = min(rank + OVERSAMPLING, dimension) if rank else 0
    basis = _orthogonalise(np.random.default_rng(0).standard_normal((dimension, width)))
    for _ in range(ITERATIONS):
        basis = _orthogonalise(differences.T @ (differences @ basis))
    along = differences @ basis
    return np.asarray(basis @ np.linalg.eigh(along.T @ along)[1][:, ::-1][:, :rank])


def _orthogonalise(vectors: Floats) -> Floats:
    """Orthonormal vectors of the same span, (d, k) -> (d, <= k)."""
    sizes, rotation = np.linalg.eigh(vectors.T @ vectors)
    sizeable = sizes > SMALLEST_SHARE * sizes.max(initial=0.0)
    return np.asarray(vectors @ rotation[:, sizeable] / np.sqrt(sizes[sizeable]))


def _list_pairs(products: Floats) -> Floats:
    """Atanh of the cosine of all pairs, by the inner products of all vectors."""
    sizes = np.sqrt(np.maximum(np.diag(products), 1e-12))
    return fisher_z((products / sizes / sizes[:, None])[np.triu_indices(len(products), 1)])
