"""Lines and sentences as one line: with a space between them, but in Chinese and Japanese."""

import re
from collections.abc import Iterable

_LETTERS = "\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_MARKS = "\u3001-\u3003\u3008-\u301f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff3d\uff5b-\uff65"
_UNSPACED = re.compile(f"[{_LETTERS}{_MARKS}]")
_MARK = re.compile(f"[{_MARKS}]")


def is_unspaced(letter: str) -> bool:
    """Whether a letter or mark is Chinese or Japanese, which have no spaces between words and sentences."""
    return _UNSPACED.match(letter) is not None


def count_unspaced(text: str) -> int:
    """Count the letters and marks of a text that are Chinese or Japanese."""
    return len(_UNSPACED.findall(text))


def join_texts(texts: Iterable[str]) -> str:
    """Join texts, none of them blank, to one, with a space where their language has one."""
    joined: list[str] = []
    for text in texts:
        if joined:
            joined.append(gap(joined[-1], text))
        joined.append(text)
    return "".join(joined)


def gap(before: str, after: str) -> str:
    """Return what stands between two texts that are not empty: a space, or nothing."""
    last, first = before[-1], after[0]
    wide = is_unspaced(last) and is_unspaced(first)
    return "" if wide or _MARK.match(last) or _MARK.match(first) else " "
