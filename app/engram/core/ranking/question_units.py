"""Standard units of a collection's questions: how near two of them are beside a random pair.

What a cosine means depends on the encoder and on the collection. So the mean of the collection's passages is taken
off both vectors, and nearness is (atanh cos - mean) / deviation over random pairs.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Vectors = NDArray[np.floating]

QUESTIONS_FOR_UNITS = 10
"""Judged questions from which on pairs of questions count more than pairs of passages for the standard units."""
LARGEST_COSINE = 1.0 - 1e-6


@dataclass(frozen=True, slots=True)
class PassageSpread:
    """Spread of a collection's passages about their mean.

    Attributes:
        centre: their mean vector, (d,).
        mean, variance: of atanh of the cosine of random pairs, once the centre is taken off; None of one passage.
    """

    centre: Floats
    mean: float | None
    variance: float | None


@dataclass(frozen=True, slots=True)
class QuestionUnits:
    """Standard units of a collection's questions.

    Attributes:
        centre: mean vector of the collection's passages, (d,).
        mean, deviation: of atanh of the cosine of random pairs of questions, once the centre is taken off.
    """

    centre: Floats
    mean: float
    deviation: float

    def standardise(self, cosines: Floats, one: Floats, other: Floats) -> Floats:
        """Nearness of pairs of unit vectors in standard units, (n,).

        Args:
            cosines: of each pair, (n,).
            one, other: inner products of each vector of a pair with the centre, (n,).
        """
        return np.asarray((self._fisher_z_centred(cosines, one, other) - self.mean) / self.deviation)

    def fit_to_other_languages(self, question: Floats, foreign: Vectors) -> "QuestionUnits":
        """Fit the units to the question's cosines with questions in other languages.

        Texts of two languages are less near, and their nearness is less spread. The nearest question, which may
        have the same need, is left out of the fit.

        Args:
            question: unit vector, (d,).
            foreign: unit vectors of judged questions in other languages, (n, d); too few of them change nothing.
        """
        if len(foreign) <= QUESTIONS_FOR_UNITS:
            return self
        vectors = foreign.astype(np.float64)
        along = np.asarray(question @ self.centre)
        values = np.sort(self._fisher_z_centred(vectors @ question, along, vectors @ self.centre))[:-1]
        return replace(self, mean=float(values.mean()), deviation=float(values.std()) or self.deviation)

    def _fisher_z_centred(self, cosines: Floats, one: Floats, other: Floats) -> Floats:
        size = float(self.centre @ self.centre)
        spread = np.sqrt(np.maximum((1.0 - 2.0 * one + size) * (1.0 - 2.0 * other + size), 1e-12))
        return fisher_z((cosines - one - other + size) / spread)


def fisher_z(cosines: Floats) -> Floats:
    """Fisher's transformation, atanh, under which the spread of a cosine does not depend on its mean."""
    return np.arctanh(np.clip(cosines, -LARGEST_COSINE, LARGEST_COSINE))


def measure_passages(passages: Vectors) -> PassageSpread:
    """Measure how a collection's passages lie about their mean.

    Args:
        passages: unit vectors of some of them, (m, d), m > 0.

    Raises:
        ValueError: there is no passage.
    """
    if not len(passages):
        raise ValueError("the units of a collection are measured on its passages: there is none")
    centre = passages.astype(np.float64).mean(axis=0)
    return PassageSpread(centre, *_measure_pairs(passages, centre))


def measure_units(passages: PassageSpread, questions: Vectors) -> QuestionUnits:
    """Measure the standard units of a collection's questions.

    Pairs of passages stand for pairs of questions where few questions have been judged.

    Args:
        questions: unit vectors of some judged questions, (n, d).
    """
    mean, variance = _measure_pairs(questions, passages.centre)
    weight = len(questions) / (len(questions) + QUESTIONS_FOR_UNITS) if len(questions) > 1 else 0.0
    mean = (1.0 - weight) * (passages.mean or 0.0) + weight * (mean or 0.0)
    variance = (1.0 - weight) * (passages.variance or 0.0) + weight * (variance or 0.0)
    return QuestionUnits(passages.centre, mean, float(np.sqrt(variance)) if variance > 0 else 1.0)


def _measure_pairs(vectors: Vectors, centre: Floats) -> tuple[float | None, float | None]:
    """Mean and variance of atanh of the cosine of all pairs of vectors, once the centre is taken off."""
    if len(vectors) < 2:
        return None, None
    apart = vectors.astype(np.float64).reshape(len(vectors), len(centre)) - centre
    size = np.linalg.norm(apart, axis=1, keepdims=True)
    apart = apart / np.where(size > 0, size, 1.0)
    nearness = fisher_z((apart @ apart.T)[np.triu_indices(len(apart), 1)])
    return float(nearness.mean()), float(nearness.var())
