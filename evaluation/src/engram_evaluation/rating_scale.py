"""Scale of people's ratings of passages; each word of it is a verdict."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from engram_evaluation.dataset_files import DatasetError, Line, read_text

SCALE: Mapping[str, float] = {"Excellent": 1.0, "Acceptable": 2 / 3, "Could be Improved": 1 / 3, "Bad": 0.0}
"""FeedbackQA's words (Li et al., 2022) at equal distances on [0, 1]."""


@dataclass(frozen=True, slots=True)
class PassageRatings:
    """A passage that a question was answered with, and the words of those who rated it, in the file's order.

    Raters are not identified: the first of one passage need not be the first of another.
    """

    passage_id: str
    words: tuple[str, ...]


def as_verdict(word: str) -> tuple[int, float]:
    """(y, confidence) of a word: above the middle of the scale it supports, and it is as sure as it is far from it.

    Excellent (1, 1), Acceptable (1, 1/3), Could be Improved (0, 1/3), Bad (0, 1): R of GAM-RAG, Eq. 11, is divided
    by the confidence, so a word in the middle is heard as one that is three times as noisy.
    """
    value = SCALE[word]
    return int(value > 0.5), abs(2 * value - 1)


def mean_value(words: Sequence[str]) -> float:
    """The mean of some words on the scale, in [0, 1]."""
    return fmean(SCALE[word] for word in words)


def is_agreed(pairs: Sequence[PassageRatings]) -> bool:
    """Whether all who rated a question's passages are for or against each of them together."""
    return all(len({as_verdict(word)[0] for word in pair.words}) == 1 for pair in pairs)


def read_ratings(
    name: str, lines: Iterable[Line], query_ids: Collection[str], known: Collection[str]
) -> dict[str, tuple[PassageRatings, ...]]:
    """Query id -> its rated passages, from rows ``{"query_id", "passage_id", "ratings": [word, ...]}``.

    Raises:
        DatasetError: a row names what is not there, says something else than ``SCALE``, or repeats a pair.
    """
    ratings: dict[str, list[PassageRatings]] = {}
    for where, row in lines:
        query, passage, words = (
            read_text(where, row, "query_id"),
            read_text(where, row, "passage_id"),
            row.get("ratings"),
        )
        if query not in query_ids:
            raise DatasetError(f"{where}: query_id names no query: {query!r}.")
        if passage not in known:
            raise DatasetError(f"{where}: passage_id names no passage: {passage!r}.")
        if not (
            isinstance(words, list) and words and all(isinstance(word, str) and word in SCALE for word in words)
        ):
            raise DatasetError(f"{where}: ratings must be a list of {', '.join(SCALE)}, and not empty.")
        pairs = ratings.setdefault(query, [])
        if any(pair.passage_id == passage for pair in pairs):
            raise DatasetError(f"{name}: passage {passage!r} is rated twice for query {query!r}.")
        pairs.append(PassageRatings(passage, tuple(words)))
    return {query: tuple(pairs) for query, pairs in ratings.items()}
