"""Curating evidence: what says the same as what is there already does not enter a second time.

Three ways to say the same: the same words in the same order (exact), nearly the same words (near: a Jaccard
overlap of word pairs of at least ``REPETITION_OVERLAP``), and a part of what another says (contained: all words of
the shorter in one run of the longer). The first to come is kept, also where the later one is longer: what cites it
goes on standing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from engram.core.text.words import words

Repeats = Literal["exact", "near", "contained"]
REPETITION_OVERLAP = 0.8
"""Least overlap of word pairs from which two sentences say the same: one word of twenty may differ."""
_KeyT = TypeVar("_KeyT")


@dataclass(frozen=True, slots=True)
class CurationResult:
    """Candidates to keep, in order; for every other one the kind of repetition, and of what.

    Attributes:
        kept_positions: positions among the candidates.
        dropped: position -> how it repeats a sentence that is kept or was there.
    """

    kept_positions: list[int]
    dropped: dict[int, Repeats]


def curate(candidates: Sequence[str], known_texts: Iterable[str] = ()) -> CurationResult:
    """Select candidates that repeat neither ``known_texts`` nor earlier candidates.

    A text without words says nothing and counts as exact.
    """
    seen_texts = [_CuratedText(text) for text in known_texts]
    kept: list[int] = []
    dropped: dict[int, Repeats] = {}
    for at, text in enumerate(candidates):
        curated = _CuratedText(text)
        how = _repeats(curated, seen_texts)
        if how is None:
            kept.append(at)
            seen_texts.append(curated)
        else:
            dropped[at] = how
    return CurationResult(kept, dropped)


class _CuratedText:
    __slots__ = ("pairs", "run", "words")

    def __init__(self, text: str) -> None:
        self.words = words(text)
        self.run = f" {' '.join(self.words)} "
        self.pairs = frozenset(zip(self.words, self.words[1:], strict=False)) or frozenset(
            (word, "") for word in self.words
        )


def _repeats(candidate: _CuratedText, known_texts: Iterable[_CuratedText]) -> Repeats | None:
    if not candidate.words:
        return "exact"
    repeat: Repeats | None = None
    for other in known_texts:
        if candidate.run == other.run:
            return "exact"
        if repeat is None and _overlap(candidate, other) >= REPETITION_OVERLAP:
            repeat = "near"
        if repeat is None and (candidate.run in other.run):
            repeat = "contained"
    return repeat


def _overlap(one: _CuratedText, other: _CuratedText) -> float:
    """Jaccard overlap of word pairs, in [0, 1]."""
    shared = len(one.pairs & other.pairs)
    return shared / (len(one.pairs) + len(other.pairs) - shared) if shared else 0.0
