"""Pairs of questions: the signals that compare them, and the log odds of the same need (``same_need``)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.question_contrasts import CONTRASTS, ContrastShares, Flags, QuestionMarks, compare_marks
from engram.core.ranking.question_priors import (
    CROSS_LANGUAGE_NEARNESS,
    MAX_NEARNESS,
    PRIOR_NEARNESS,
    PRIOR_OTHER,
    PRIOR_PAIRS,
    PRIOR_SHARE,
    PRIOR_WORDS,
)
from engram.core.ranking.question_units import Floats

NEARNESS_WIDTH = 0.8
"""Width of the kernel in nearness, in standard units."""
WORDS_WIDTH = 0.08
"""Width of the kernel in the cosine of words."""
FIGURES_MISMATCH_WEIGHT = 0.05
"""Weight of a kernel for pairs of which only one, observed or new, contrasts in figures."""
SMALLEST_DENSITY = 1e-300
FIGURES = CONTRASTS.index("figures")
"""Place of the first contrast, which the kernel density knows; others count by their ratios."""


@dataclass(frozen=True, slots=True)
class ReadQuestion:
    """A question's text, as it is compared.

    Attributes:
        key: the same for texts that are equal but for case, white space and marks at their ends.
        terms: each once.
        language: ISO 639 code; None if it cannot be told.
        words: term -> idf, >= 0, once the collection was asked.
    """

    key: bytes
    terms: Sequence[str]
    language: str | None
    marks: QuestionMarks
    words: Mapping[str, float] = field(default_factory=dict)

    def is_foreign_to(self, other: "ReadQuestion") -> bool:
        """Whether the two are in different languages."""
        return None not in (self.language, other.language) and self.language != other.language


@dataclass(frozen=True, slots=True)
class Signals:
    """Signals of pairs of questions.

    Attributes:
        nearness: in standard units of the collection, (n,).
        words: cosine of idf-weighted words, in [0, 1], (n,); NaN where a pair is in two languages.
        contrasts: which contrasts each pair has, (n, 6), see ``question_contrasts.CONTRASTS``.
        cross_language: whether the pair is in two languages, and nearness in units of
            ``QuestionUnits.fit_to_other_languages``, (n,); None: no pair is.
    """

    nearness: Floats
    words: Floats
    contrasts: Flags
    cross_language: Flags | None = None

    @classmethod
    def compare(cls, nearness: Floats, pairs: Sequence[tuple[ReadQuestion, ReadQuestion]]) -> "Signals":
        """Compare pairs of so much nearness, (n,), as if each were in one language."""
        contrasts = [compare_marks(one.marks, other.marks) for one, other in pairs]
        return cls(
            nearness,
            np.array([compare_words(one.words, other.words) for one, other in pairs]),
            np.array(contrasts, dtype=np.bool_).reshape(-1, len(CONTRASTS)),
        )

    def select(self, places: NDArray[np.intp]) -> "Signals":
        """Select pairs by their places; none of them is in two languages."""
        return Signals(self.nearness[places], self.words[places], self.contrasts[places])


def compare_words(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Cosine of two texts by their words, in [0, 1]; 0 if one has none.

    Args:
        one, other: term -> idf, >= 0.
    """
    shared = sum(weight * weight for term, weight in one.items() if term in other)
    sizes = [sum(weight * weight for weight in words.values()) for words in (one, other)]
    return min(1.0, shared / float(np.sqrt(sizes[0] * sizes[1]))) if min(sizes) > 0 else 0.0


def compute_log_odds(
    pairs: Signals, other_pairs: Signals, shares: ContrastShares, known: Flags | None = None
) -> Floats:
    """Log odds that two questions have the same need, for each pair, (n,).

    Args:
        other_pairs: signals between judged questions and the nearest one with other evidence, m of them.
        shares: of contrasts. The one in figures is part of the densities, others are independent of them.
        known: which of the others each pair is compared with, (n, m); None: with all.
    """
    differ = pairs.contrasts[:, FIGURES]
    same_density = np.where(differ, shares.same[FIGURES], 1.0 - shares.same[FIGURES]) / MAX_NEARNESS
    other = _compute_other_density(pairs, other_pairs, known)
    beside = shares.compute_log_ratios(pairs.contrasts)[:, FIGURES + 1 :].sum(axis=1)
    prior = np.log(PRIOR_SHARE) - np.log1p(-PRIOR_SHARE)
    return np.asarray(prior + np.log(same_density) - np.log(np.maximum(other, SMALLEST_DENSITY)) + beside)


def _compute_other_density(pairs: Signals, other_pairs: Signals, known: Flags | None) -> Floats:
    """f0 of each pair, (n,). It never rises with nearness: see ``_decline``."""
    count = len(other_pairs.nearness)
    (mean, deviation), (own_mean, own_deviation) = PRIOR_NEARNESS, CROSS_LANGUAGE_NEARNESS
    cross_language = (
        np.zeros(len(pairs.nearness), dtype=np.bool_) if pairs.cross_language is None else pairs.cross_language
    )
    differ, others_differ = pairs.contrasts[:, FIGURES], other_pairs.contrasts[:, FIGURES]
    nearness = np.minimum(pairs.nearness, MAX_NEARNESS)
    imagined = (
        np.where(cross_language, _decline(nearness - own_mean, own_deviation), _decline(nearness - mean, deviation))
        * _drop_absent(2.0 * _gauss(pairs.words, PRIOR_WORDS))
        * np.where(differ, PRIOR_OTHER[FIGURES], 1.0 - PRIOR_OTHER[FIGURES])
    )
    own_nearness = np.minimum(other_pairs.nearness, MAX_NEARNESS)
    words = pairs.words[:, None]
    own = (
        _decline(nearness[:, None] - own_nearness, NEARNESS_WIDTH)
        * _drop_absent(
            _gauss(words - other_pairs.words, WORDS_WIDTH) + _gauss(words + other_pairs.words, WORDS_WIDTH)
        )
        * np.where(differ[:, None] == others_differ, 1.0 - FIGURES_MISMATCH_WEIGHT, FIGURES_MISMATCH_WEIGHT)
    )
    if known is None:
        return np.asarray((PRIOR_PAIRS * imagined + own.sum(axis=1)) / (PRIOR_PAIRS + count))
    return np.asarray((PRIOR_PAIRS * imagined + (own * known).sum(axis=1)) / (PRIOR_PAIRS + known.sum(axis=1)))


def _drop_absent(densities: Floats) -> Floats:
    """Take densities of a signal that is absent for 1, which leaves it out."""
    return np.where(np.isnan(densities), 1.0, densities)


def _decline(distances: Floats, width: float) -> Floats:
    """Normal density above 0, and its peak below: a pair that is less near than another counts as near as that one.

    Where questions with other evidence are very near, the plain density is low of middling pairs as well, and would
    take them for the same need.
    """
    return _gauss(np.maximum(distances, 0.0), width)


def _gauss(distances: Floats, width: float) -> Floats:
    return np.asarray(np.exp(-0.5 * (distances / width) ** 2) / (width * np.sqrt(2.0 * np.pi)))
