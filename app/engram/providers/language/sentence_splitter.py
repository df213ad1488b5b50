"""Splitting of English text into sentences by a few rules; spaCy's sentencizer cuts after every full stop."""

import re

from engram.core.text.sizes import SENTENCES
from engram.providers.language.name_words import FUNCTION_WORDS

# A full stop after one of these never ends a sentence: a name or a number follows.
_OPENING_ABBREVIATIONS = frozenset(
    """dr mr mrs ms messrs prof st ste mt ft gen col lt sgt capt cmdr adm maj rev hon gov sen rep pres fr
    vs v e.g i.e cf ca approx fl feat""".split()
)
# These may stand at the end of a sentence, which the next word tells.
_CLOSING_ABBREVIATIONS = frozenset(
    "jr sr inc ltd co corp bros etc al a.m p.m ph.d m.d b.a m.a d.c b.c a.d b.c.e c.e esq llc".split()
)
# These need a number after them, otherwise the full stop is one: "No. 5", but "He said no."
_NUMBERED_ABBREVIATIONS = frozenset(
    "no nos p pp vol fig ch sec art jan feb mar apr jun jul aug sep sept oct nov dec c b d r".split()
)
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]", re.UNICODE)
# Possessive and anchored at the first mark, so that a line of dots is read once.
_BOUNDARY = re.compile(r"""(?<![.!?…])[.!?…]++["'”’»)\]]*+(?=\s+["'“‘«(\[]*(\w+))|[。！？]|\n\s*\n""")
_LAST_WORD = re.compile(r"[\w.]+$")


def split_sentences(text: str) -> list[str]:
    """Sentences of ``text`` without the white space around them; blank text has none.

    What comes after all but one of ``SENTENCES`` is the last one: that much is no prose.
    """
    sentences: list[str] = []
    start = 0
    for match in _BOUNDARY.finditer(text):
        if match.group(1) is None or _ends_sentence(text[max(start, match.start() - 40) : match.start()], match):
            if sentence := text[start : match.end()].strip():
                sentences.append(sentence)
            start = match.end()
            if len(sentences) == SENTENCES - 1:
                break
    if rest := text[start:].strip():
        sentences.append(rest)
    return sentences


def _ends_sentence(before: str, match: re.Match[str]) -> bool:
    """Whether the punctuation of ``match`` ends a sentence, by the words on either side of it."""
    following: str = match.group(1)
    last = _LAST_WORD.search(before)
    if following[0].islower():
        return False
    if last is None or match.group().rstrip("\"'”’»)]") != ".":
        return True
    word = last.group().lower()
    if word in _OPENING_ABBREVIATIONS or (word in _NUMBERED_ABBREVIATIONS and following[0].isdigit()):
        return False
    is_initial = last.group()[-1].isupper() and _INITIALS.fullmatch(last.group()) is not None
    return not (is_initial or word in _CLOSING_ABBREVIATIONS) or following.lower() in FUNCTION_WORDS
