"""Words of a text, to compare texts by, and of a number of things."""

import re

_WORD = re.compile(r"[^\W_]+")
NOT_BLANK = (
    r"[^\s\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]"
)
"""Pattern of a character that is seen, for Python and JSON Schema: no white space, joiner or mark of direction."""
_VISIBLE = re.compile(NOT_BLANK)


def words(text: str) -> list[str]:
    """The words of a text, case-folded, in order."""
    return [word.casefold() for word in _WORD.findall(text)]


def is_blank(text: str) -> bool:
    """Whether nothing of a text is seen."""
    return _VISIBLE.search(text) is None


def count_noun(number: int, noun: str) -> str:
    """Write a number of things: ``1 file``, ``2 files``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def normalise_words(text: str) -> str:
    """The words of a text, case-folded and joined by single spaces."""
    return " ".join(words(text))
