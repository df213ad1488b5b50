"""Unicode's normal forms, in time that grows with the text and no faster."""

import re
import unicodedata
from typing import Literal

MARKS = 30
"""Marks in a row that stay (Unicode's Stream-Safe Text Format, UAX 15): no script piles up more on one letter."""

# Where marks may pile up: none of them is a word character, but for the two that voice half-width kana.
_PILE = re.compile(rf"[\W\uff9e\uff9f]{{{MARKS + 1},}}")


def normalise_characters(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    """``unicodedata.normalize``, of each pile of marks the first ``MARKS``.

    Marks are brought into order one by one, past all that stand before them: 500,000 of them take ten minutes.
    """
    return text if text.isascii() else unicodedata.normalize(form, _PILE.sub(_thin_marks, text))


def _thin_marks(pile: re.Match[str]) -> str:
    kept: list[str] = []
    marks = 0
    for character in pile[0]:
        is_mark = unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) > 0
        marks = marks + 1 if is_mark else 0
        if marks <= MARKS:
            kept.append(character)
    return "".join(kept)
