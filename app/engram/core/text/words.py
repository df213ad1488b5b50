"""Words of a text, to compare texts by, and of a number of things."""

import re

_WORD = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """The words of a text, case-folded, in order."""
    return [word.casefold() for word in _WORD.findall(text)]


def count_noun(number: int, noun: str) -> str:
    """Write a number of things: ``1 file``, ``2 files``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def normalise_words(text: str) -> str:
    """The words of a text, case-folded and joined by single spaces."""
    return " ".join(words(text))
