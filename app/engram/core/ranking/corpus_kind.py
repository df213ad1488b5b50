"""The kind of a corpus: whether its passages are titled after the things they describe (ours).

In an encyclopedia a passage called "William Herschel" is about William Herschel, and questions name such things. A
title then says more than the words and vectors of a passage do. In manuals, FAQ pages, papers and conversations
titles are headings or absent, and ranking weights that trust titles do harm. So each kind has ranking weights of
its own.

Share of passages that are titled after what they describe: encyclopedias .58 (HotpotQA) to .82 (TimeQA), a mixed
corpus of manuals, forum posts and encyclopedia pages .42 (MT-RAG), a documentation .06, FAQ pages and papers .00.
"""

import re
from collections.abc import Iterable
from typing import Literal

CorpusKind = Literal["encyclopedic", "general"]
PassageFacts = Literal["auto", "on", "off"]
"""Which passages facts are read from: ``on``: all, ``off``: none, ``auto``: those about their title."""

ENCYCLOPEDIC_SHARE = 0.5
"""Share of passages titled after what they describe from which a corpus is an encyclopedia."""
MAX_TITLE_WORDS = 10
"""Longer titles are sentences or questions, not names."""
CONNECTING_WORDS = frozenset(
    "a an and at by da de del der di du el for from in la le of on or the to und van von with &".split()
)
"""Words that names hold in lower case."""

_WORD = re.compile(r"[^\W_][\w'’.-]*|&")


def is_name(title: str) -> bool:
    """Tell whether a title is written like a name: no word but connecting ones begins in lower case."""
    words = _WORD.findall(title)
    return 0 < len(words) <= MAX_TITLE_WORDS and not any(
        word[0].islower() and word not in CONNECTING_WORDS for word in words
    )


def is_titled_after_subject(title: str, text: str) -> bool:
    """Tell whether a passage's title is a name that its text uses.

    Args:
        title: without a disambiguation: "Mercury" for "Mercury (planet)".
    """
    return is_name(title) and title in text


def title_share(passages: Iterable[tuple[str | None, str]]) -> float | None:
    """Share of passages that are titled after what they describe, in [0, 1]; None without passages.

    Args:
        passages: title without a disambiguation, None for an untitled passage, and text of each.
    """
    checks = [title is not None and is_titled_after_subject(title, text) for title, text in passages]
    return sum(checks) / len(checks) if checks else None


def kind_of(share: float | None) -> CorpusKind:
    """The kind of a corpus with this share of passages titled after what they describe; None: not measured."""
    return "encyclopedic" if share is not None and share >= ENCYCLOPEDIC_SHARE else "general"
