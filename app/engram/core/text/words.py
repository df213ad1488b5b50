"""Words of a text, to compare texts by."""

import re

_WORD = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """The words of a text, case-folded, in order."""
    return [word.casefold() for word in _WORD.findall(text)]


def normalise_words(text: str) -> str:
    """The words of a text, case-folded and joined by single spaces."""
    return " ".join(words(text))
