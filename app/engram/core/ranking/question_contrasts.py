"""Contrasts: what makes two near questions different.

Two questions may lie near to each other and ask for different evidence: "the allowance in 2023" and "in 2026", "can
I" and "can't I", "now" and "in 2023". Each kind of contrast is a fact of a pair, and counts by how much rarer it is
between questions with the same evidence than between others:

    likelihood ratio = P(contrast | same evidence) / P(contrast | other evidence)

Both shares are learned from pairs of the collection's judged questions, beside ``PRIOR_PAIRS`` pairs as other
collections have them. So a collection in which the same page answers for every year learns that years mean little.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.question_priors import PRIOR_OTHER, PRIOR_PAIRS, PRIOR_SAME

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

Contrast = Literal["figures", "figure", "names", "name", "negation", "time"]
"""Kinds of contrasts:

- figures: both questions have tokens with digits (numbers, years, product codes, amounts), and not the same ones.
- figure: only one has such tokens.
- names: each question has a word in a name that the other question lacks.
- name: only one question has such a word.
- negation: only one question is negated.
- time: one question asks for the present ("now", "latest"), the other for a date.
"""
CONTRASTS: tuple[Contrast, ...] = get_args(Contrast)


@dataclass(frozen=True, slots=True)
class QuestionMarks:
    """The figures, dates and names of a question, in which another question may differ.

    Attributes:
        words: all words, folded to lower case.
        figures: tokens with digits, in lower case.
        names: words of names, in lower case.
        negated: whether the question has a word of negation.
        present: whether the question asks for what holds now.
        dated: whether the question names a year or a date.
    """

    words: frozenset[str]
    figures: frozenset[str]
    names: frozenset[str]
    negated: bool
    present: bool
    dated: bool


@dataclass(frozen=True, slots=True)
class ContrastShares:
    """Share of pairs that have each contrast.

    Attributes:
        same: of pairs with the same evidence, in (0, 1), (6,).
        other: of pairs with other evidence, in (0, 1), (6,).
    """

    same: Floats
    other: Floats

    def compute_log_ratios(self, contrasts: Flags) -> Floats:
        """Log likelihood ratio of each contrast of pairs, (..., 6), for ``contrasts`` (..., 6).

        A contrast that a pair does not have counts as well: it is evidence for the same need.
        """
        with_contrast = np.log(self.same) - np.log(self.other)
        without = np.log1p(-self.same) - np.log1p(-self.other)
        return np.where(contrasts, with_contrast, without)

    def sum_log_ratios(self, contrasts: Flags) -> Floats:
        """Log likelihood ratio of all contrasts of each pair together, (n,), for ``contrasts`` (n, 6)."""
        return np.asarray(self.compute_log_ratios(contrasts).sum(axis=1))


def compare_marks(one: QuestionMarks, other: QuestionMarks) -> tuple[bool, ...]:
    """Return whether two questions have each contrast, in the order of ``CONTRASTS``."""
    own_names, other_names = bool(one.names - other.words), bool(other.names - one.words)
    own_figures, other_figures = bool(one.figures), bool(other.figures)
    return (
        own_figures and other_figures and one.figures != other.figures,
        own_figures != other_figures,
        own_names and other_names,
        own_names != other_names,
        one.negated != other.negated,
        (one.present and other.dated and not other.present) or (other.present and one.dated and not one.present),
    )


def measure_contrasts(same_pairs: Flags, other_pairs: Flags) -> ContrastShares:
    """Measure the shares of contrasts.

    Args:
        same_pairs: contrasts of pairs with the same evidence, (n, 6).
        other_pairs: contrasts of pairs with other evidence, (m, 6).
    """
    return ContrastShares(_measure_share(same_pairs, PRIOR_SAME), _measure_share(other_pairs, PRIOR_OTHER))


def name_contrasts(contrasts: Sequence[bool]) -> tuple[Contrast, ...]:
    """Names of the contrasts that a pair has."""
    return tuple(name for name, has in zip(CONTRASTS, contrasts, strict=True) if has)


def _measure_share(pairs: Flags, prior: Floats) -> Floats:
    counts = pairs.reshape(len(pairs), len(CONTRASTS)).sum(axis=0)
    return np.asarray((PRIOR_PAIRS * prior + counts) / (PRIOR_PAIRS + len(pairs)))
