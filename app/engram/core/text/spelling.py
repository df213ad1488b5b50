"""Comparison of texts that differ only in spelling."""

import re
import unicodedata
from typing import Any

_WORD = re.compile(r"\w+")
_NUMERAL = re.compile(r"[ivxlcdm]+")
_DOUBLED = re.compile(r"([b-df-hj-np-tv-z])\1+")
_SHORT = 3
"""Letters up to which a word is kept as it is: "Ann" and "An" are different people."""
_FIRST_MARKED_SCRIPT = "\u0530"
"""Scripts before it (Latin, Greek, Cyrillic) are read without marks; in others a mark makes another letter."""
_SOUNDS = (("ph", "f"), ("ck", "k"), ("y", "i"))


def compose(value: Any) -> Any:
    """A JSON value whose texts and keys are as Unicode composes them (NFC): "ü" is one character."""
    if isinstance(value, str):
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    if isinstance(value, dict):
        return {compose(key): compose(part) for key, part in value.items()}
    return [compose(part) for part in value] if isinstance(value, list) else value


def normalise_spelling(name: str) -> str:
    """The key under which names meet that differ in accents, doubled consonants, punctuation or spaces only.

    "Muhammad Ali" and "Muhamad Ali", "Spider-Man" and "Spiderman", "Tchaikovsky" and "Tchaikovski" meet. Numbers,
    numerals and short words are kept as they are: Lothair II is not Lothair I.

    Args:
        name: normalised, so that case does not count.

    Returns:
        The key; a name without letters and digits is its own.
    """
    words = _WORD.findall(_drop_marks(name.replace("&", " and ")))
    return "".join(_word(word) for word in words) or name


def _drop_marks(name: str) -> str:
    kept: list[str] = []
    for mark in unicodedata.normalize("NFD", name):
        if unicodedata.combining(mark) and kept and kept[-1] < _FIRST_MARKED_SCRIPT:
            continue
        kept.append(mark)
    return unicodedata.normalize("NFC", "".join(kept))


def _word(word: str) -> str:
    if len(word) <= _SHORT or any(mark.isdigit() for mark in word) or _NUMERAL.fullmatch(word):
        return word
    for sound, same in _SOUNDS:
        word = word.replace(sound, same)
    return _DOUBLED.sub(r"\1", word)
