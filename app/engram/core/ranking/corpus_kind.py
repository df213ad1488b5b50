"""The kind of a corpus: whether its passages are titled after the things that questions name (ours).

In an encyclopedia a passage called "William Herschel" is about William Herschel, and questions name such things. A
title then says more than the words and vectors of a passage do. In manuals, FAQ pages, papers and conversations
titles are headings or absent, and ranking weights that trust titles do harm. So each kind has ranking weights of
its own.

Two shares tell the kinds apart. Titles tell before anybody asked: the share of passages that are titled after
what they describe is .75 (MuSiQue) to .92 (2WikiMultihopQA) in encyclopedias, .43 in a mixed corpus of manuals,
forum posts and encyclopedia pages (MT-RAG), and .06 at most in documentation, FAQ pages, papers and forums.
Questions tell better: the share of them with a candidate titled after something that they name is .62 to .96 in
encyclopedias and .05 at most elsewhere. Titles tell nothing where capitals do not set names apart: in German, and
in scripts without capitals. Such a corpus counts as general until it was asked.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

CorpusKind = Literal["encyclopedic", "general"]
KindSource = Literal["setting", "questions", "titles", "default"]
"""What decided on a kind: somebody set it, questions, titles, or nothing yet."""

ENCYCLOPEDIC_SHARE = 0.5
"""Share of passages titled after what they describe from which a corpus is an encyclopedia."""
NAMING_SHARE = 1 / 3
"""Share of questions that name what a candidate is titled after from which a corpus is an encyclopedia."""
NOT_NAMING_SHARE = 0.1
"""Share up to which it is none. Between the two shares titles decide: questions may name things indirectly."""
LEAST_QUESTIONS = 30
"""Different questions that a share is made of at least; with so many it is right to nine points."""
MAX_TITLE_WORDS = 10
"""Longer titles are sentences or questions, not names."""
CONNECTING_WORDS = frozenset(
    "a an and at by da de del der di du el for from in la le of on or the to und van von with &".split()
)
"""Words that names hold in lower case."""

_WORD = re.compile(r"[^\W_][\w'’.-]*|&")


def is_name(title: str) -> bool:
    """Tell whether a title is written like a name: with capitals, and no word but connecting ones without."""
    words = _WORD.findall(title)
    return (
        len(words) <= MAX_TITLE_WORDS
        and any(word[0].isupper() for word in words)
        and not any(word[0].islower() and word not in CONNECTING_WORDS for word in words)
    )


def uses_name(title: str, text: str) -> bool:
    """Tell whether a text uses the last capitalised word of a name, such as a person's surname.

    A paragraph on William Herschel may call him Herschel. A heading like "Remote Work" is not used like that: the
    text below it speaks of remote work.

    Args:
        title: without a disambiguation: "Mercury" for "Mercury (planet)".
    """
    capitalised = [word for word in _WORD.findall(title) if not word[0].islower()]
    return bool(capitalised) and capitalised[-1] in _WORD.findall(text)


def title_share(passages: Iterable[tuple[str | None, str]]) -> float | None:
    """Share of passages that are titled after what they describe, in [0, 1]; None without passages.

    Passages with one title are paragraphs of one page. All of them count if one of them uses the name.

    Args:
        passages: title without a disambiguation, None for an untitled passage or a title that tells nothing, and
            text of each.
    """
    counts: Counter[str] = Counter()
    used: set[str] = set()
    total = 0
    for title, text in passages:
        total += 1
        if title is not None and is_name(title):
            counts[title] += 1
            if uses_name(title, text):
                used.add(title)
    return sum(counts[title] for title in used) / total if total else None


def question_share(naming: Sequence[bool]) -> float | None:
    """Share of questions that name what a candidate is titled after, in [0, 1]; None of too few questions.

    Args:
        naming: of each question whether it does.
    """
    return sum(naming) / len(naming) if len(naming) >= LEAST_QUESTIONS else None


@dataclass(frozen=True, slots=True)
class CorpusKindMeasure:
    """Measures of a collection's kind.

    Attributes:
        title_share: share of its passages titled after what they describe, in [0, 1]; None: not measured.
        question_share: share of its questions that name what a candidate is titled after, in [0, 1]; None: not
            measured, or of too few questions.
    """

    title_share: float | None
    question_share: float | None = None

    @property
    def source(self) -> KindSource:
        """Source of the kind: questions if their share is clear, else titles."""
        if self.question_share is not None and not NOT_NAMING_SHARE < self.question_share < NAMING_SHARE:
            return "questions"
        return "default" if self.title_share is None else "titles"

    @property
    def kind(self) -> CorpusKind:
        """The kind that follows; general where nothing was measured."""
        if self.source == "questions":
            is_encyclopedic = self.question_share is not None and self.question_share >= NAMING_SHARE
        else:
            is_encyclopedic = self.title_share is not None and self.title_share >= ENCYCLOPEDIC_SHARE
        return "encyclopedic" if is_encyclopedic else "general"
