"""Same need: the probability that a past question asks for the same evidence as a new one (ours).

What a cosine means depends on the encoder and on the collection, so no constant decides. Three signals of two
questions are compared with what the collection shows:

- nearness: the cosine of their vectors, after the mean of the collection's passages is taken off both, in standard
  units of the collection: (atanh cos - mean) / deviation over random pairs.
- words: the cosine of their words, each weighted by its idf. Questions in two languages have no words to compare.
- figures: whether both name numbers, and not the same ones.

With f0 the density of these signals between a question and the nearest one with *other* evidence, f1 that between
two questions with the same need, and ρ the share of questions whose nearest past question has the same need,

    P(same need) = ρ f1 / (ρ f1 + (1 - ρ) f0)

f0 is a kernel density over the collection's own judged questions, beside a prior that weighs as much as
``PRIOR_PAIRS`` of them. f1 is uniform: a need can be worded in any way. So an encoder that makes all vectors alike,
or a collection whose questions are all alike, recalls little until two questions are closer than its different ones
ever are.
"""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Vectors = NDArray[np.floating]

SAME_NEED_SHARE = 0.1
"""ρ: of new questions, the share whose nearest judged question has the same need."""
MAX_NEARNESS = 12.0
"""Nearness, in standard units, is clipped here; f1 is uniform from 0 up to it."""
NEARNESS_WIDTH = 0.8
"""Width of the kernel in nearness, in standard units."""
WORDS_WIDTH = 0.08
"""Width of the kernel in the cosine of words."""
FIGURES_MISMATCH_WEIGHT = 0.05
"""Weight of a kernel for pairs whose ``figures_differ`` is not that of the observed pair."""
FIGURES_DIFFER = 0.03
"""Share of questions with the same need that name different numbers: one in 50 paraphrases of people and models."""
PRIOR_PAIRS = 20
"""Pseudo-count of f0's prior: pairs of questions with other evidence, as other collections have them."""
PRIOR_NEARNESS = (3.0, 1.5)
"""Mean and deviation of their nearness, in standard units."""
CROSS_LANGUAGE_NEARNESS = (2.7, 0.8)
"""The same for pairs in two languages, in units of ``fit_to_other_languages``: of 100 normal numbers the maximum is
about 2.5."""
PRIOR_WORDS = 0.15
"""Deviation of the cosine of their words, which has its mode at 0."""
PRIOR_FIGURES_DIFFER = 0.3
"""Share of them that name different numbers."""
QUESTIONS_FOR_UNITS = 10
"""Judged questions from which on pairs of questions count more than pairs of passages for the standard units."""
LARGEST_COSINE = 1.0 - 1e-6
_FIGURE = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class SameNeed:
    """Probability that a past question has the need of the present one, and what it rests on.

    Attributes:
        probability: in [0, 1].
        nearness: of the two questions, in standard units of the collection.
        words: cosine of their idf-weighted words, in [0, 1]; 0 where they are in two languages.
        figures_differ: whether both name numbers, and not the same ones.
    """

    probability: float
    nearness: float
    words: float
    figures_differ: bool


@dataclass(frozen=True, slots=True)
class Signals:
    """Signals of pairs of questions.

    Attributes:
        nearness: in standard units of the collection, (n,).
        words: cosine of idf-weighted words, in [0, 1], (n,); NaN where a pair is in two languages.
        figures_differ: whether both name numbers and not the same, (n,).
        cross_language: whether the pair is in two languages, and nearness in units of
            ``QuestionUnits.fit_to_other_languages``, (n,); None: no pair is.
    """

    nearness: Floats
    words: Floats
    figures_differ: NDArray[np.bool_]
    cross_language: NDArray[np.bool_] | None = None


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
        return _fisher_z((cosines - one - other + size) / spread)


@dataclass(frozen=True, slots=True)
class QuestionSpread:
    """Nearness of a collection's questions that need other evidence.

    Attributes:
        others: signals between judged questions and the nearest one with other evidence.
    """

    units: QuestionUnits
    others: Signals

    def compare(self, pairs: Signals, identical: NDArray[np.bool_]) -> list[SameNeed]:
        """Return a ``SameNeed`` for each pair. Pairs that are ``identical``, (n,), have probability 1."""
        probabilities = np.where(identical, 1.0, self.compute_same_need(pairs))
        columns = (probabilities, pairs.nearness, np.nan_to_num(pairs.words), pairs.figures_differ)
        return [SameNeed(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]

    def compute_same_need(self, pairs: Signals) -> Floats:
        """Probability that two questions have the same need, for each pair, (n,)."""
        same = np.where(pairs.figures_differ, FIGURES_DIFFER, 1.0 - FIGURES_DIFFER) / MAX_NEARNESS
        other = self._compute_other_density(pairs)
        return np.asarray(SAME_NEED_SHARE * same / (SAME_NEED_SHARE * same + (1.0 - SAME_NEED_SHARE) * other))

    def _compute_other_density(self, pairs: Signals) -> Floats:
        """f0 of each pair, (n,). A pair that is less near than others are on average counts as near as these."""
        count = len(self.others.nearness)
        (mean, deviation), (own_mean, own_deviation) = PRIOR_NEARNESS, CROSS_LANGUAGE_NEARNESS
        cross_language = (
            np.zeros(len(pairs.nearness), dtype=np.bool_) if pairs.cross_language is None else pairs.cross_language
        )
        typical = (PRIOR_PAIRS * mean + float(self.others.nearness.sum())) / (PRIOR_PAIRS + count)
        nearness = np.clip(pairs.nearness, typical, MAX_NEARNESS)
        imagined = (
            np.where(cross_language, _gauss(nearness - own_mean, own_deviation), _gauss(nearness - mean, deviation))
            * _drop_absent(2.0 * _gauss(pairs.words, PRIOR_WORDS))
            * np.where(pairs.figures_differ, PRIOR_FIGURES_DIFFER, 1.0 - PRIOR_FIGURES_DIFFER)
        )
        own_nearness = np.minimum(self.others.nearness, MAX_NEARNESS)
        words = pairs.words[:, None]
        own = (
            _gauss(nearness[:, None] - own_nearness, NEARNESS_WIDTH)
            * _drop_absent(
                _gauss(words - self.others.words, WORDS_WIDTH) + _gauss(words + self.others.words, WORDS_WIDTH)
            )
            * np.where(
                pairs.figures_differ[:, None] == self.others.figures_differ,
                1.0 - FIGURES_MISMATCH_WEIGHT,
                FIGURES_MISMATCH_WEIGHT,
            )
        )
        return np.asarray((PRIOR_PAIRS * imagined + own.sum(axis=1)) / (PRIOR_PAIRS + count))


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


def measure_spread(
    units: QuestionUnits,
    questions: Vectors,
    evidence: Sequence[AbstractSet[int]],
    words: Sequence[Mapping[str, float]],
    figures: Sequence[AbstractSet[str]],
    population: float,
) -> QuestionSpread:
    """Measure how near a question comes to the nearest one with other evidence, on a sample of judged questions.

    For each question of the sample the nearest one without common evidence counts. All judged questions are more
    than the sample: the maximum of N / n times as many grows by ln(N / n) times the scale of a Gumbel distribution.

    Args:
        questions: unit vectors, (n, d).
        evidence: passages that support each; a question without any takes no part.
        words: idf-weighted words of each.
        figures: numbers that each names.
        population: N, judged questions in all, at least n.
    """
    vectors = questions.astype(np.float64).reshape(len(questions), len(units.centre))
    along = vectors @ units.centre
    apart = np.array([[bool(one and other and not one & other) for other in evidence] for one in evidence])
    apart = apart.reshape(len(questions), len(questions))
    nearness = units.standardise(vectors @ vectors.T, along[:, None], along[None, :])
    nearness = np.where(apart, nearness, -np.inf)
    rows = np.flatnonzero(apart.any(axis=1))
    nearest = nearness[rows].argmax(axis=1) if len(rows) else np.zeros(0, dtype=np.intp)
    maxima = nearness[rows, nearest]
    if len(maxima) > 1 and population > len(questions):
        maxima = maxima + np.log(population / len(questions)) * maxima.std() * np.sqrt(6.0) / np.pi
    pairs = list(zip(rows.tolist(), nearest.tolist(), strict=True))
    return QuestionSpread(
        units,
        Signals(
            maxima,
            np.array([compare_words(words[one], words[other]) for one, other in pairs]),
            np.array([do_figures_differ(figures[one], figures[other]) for one, other in pairs], dtype=np.bool_),
        ),
    )


def compare_words(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Cosine of two texts by their words, in [0, 1]; 0 if one has none.

    Args:
        one, other: term -> idf, >= 0.
    """
    shared = sum(weight * weight for term, weight in one.items() if term in other)
    sizes = [sum(weight * weight for weight in words.values()) for words in (one, other)]
    return min(1.0, shared / float(np.sqrt(sizes[0] * sizes[1]))) if min(sizes) > 0 else 0.0


def find_figures(text: str) -> frozenset[str]:
    """Numbers that a text names, as digits."""
    return frozenset(_FIGURE.findall(text))


def do_figures_differ(one: AbstractSet[str], other: AbstractSet[str]) -> bool:
    """Whether both texts name numbers, and not the same ones."""
    return bool(one) and bool(other) and one != other


def _measure_pairs(vectors: Vectors, centre: Floats) -> tuple[float | None, float | None]:
    """Mean and variance of atanh of the cosine of all pairs of vectors, once the centre is taken off."""
    if len(vectors) < 2:
        return None, None
    apart = vectors.astype(np.float64).reshape(len(vectors), len(centre)) - centre
    size = np.linalg.norm(apart, axis=1, keepdims=True)
    apart = apart / np.where(size > 0, size, 1.0)
    nearness = _fisher_z((apart @ apart.T)[np.triu_indices(len(apart), 1)])
    return float(nearness.mean()), float(nearness.var())


def _fisher_z(cosines: Floats) -> Floats:
    """Fisher's transformation, atanh, under which the spread of a cosine does not depend on its mean."""
    return np.arctanh(np.clip(cosines, -LARGEST_COSINE, LARGEST_COSINE))


def _drop_absent(densities: Floats) -> Floats:
    """Take densities of a signal that is absent for 1, which leaves it out."""
    return np.where(np.isnan(densities), 1.0, densities)


def _gauss(distances: Floats, width: float) -> Floats:
    return np.asarray(np.exp(-0.5 * (distances / width) ** 2) / (width * np.sqrt(2.0 * np.pi)))
