"""Headings and labels among the sentences of a passage: they name a subject and say nothing of it."""

import re
from collections.abc import Sequence

from engram.core.text.words import words

LONGEST_HEADING = 80
"""Characters of a heading, at most."""
_END = re.compile(r"([.!…。．！।॥۔።]|[?？؟])[\"'”’»)\]」』]*$")
"""End of a statement or of a question. A question is a heading of the sentences after it, which answer it."""
_CELLS = re.compile(r"[|\t:;=]")
"""What stands between the cells of a row, a name and its value, or the parts of a list."""
_LABEL = re.compile(r"[:：][\s_.…]*$")
"""End of a label of a form, or of the words that lead to a list, without what they lead to."""


def find_headings(title: str | None, sentences: Sequence[str]) -> list[bool]:
    """Return for each sentence of a passage, in order, whether it is a heading.

    A heading has the words of the title only; or it is short, ends like no statement, and another sentence follows.
    Where less than half of the sentences end with a mark, as in a script without full stops, ends tell nothing.
    A short label without its value counts as a heading if another sentence follows.
    """
    title_words = set(words(title or ""))
    ends = [_END.search(sentence.rstrip()) for sentence in sentences]
    ends_tell = 2 * sum(end is not None for end in ends) >= len(sentences)
    return [
        set(words(sentence)) <= title_words
        or (
            place < len(sentences)
            and (
                (ends_tell and (end is None or end[1] in "?？؟") and _is_short_line(sentence))
                or (len(sentence) <= LONGEST_HEADING and _LABEL.search(sentence) is not None)
            )
        )
        for place, (sentence, end) in enumerate(zip(sentences, ends, strict=True), start=1)
    ]


def _is_short_line(sentence: str) -> bool:
    return len(sentence) <= LONGEST_HEADING and _CELLS.search(sentence) is None
