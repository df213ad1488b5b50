"""Names in other languages than English: which words are names, and which are if a collection knows them.

- Languages that capitalise names: runs of capitalised words, but no function words of spaCy's lists. German
  capitalises all nouns, so a single word of a German question is only a possible name.
- Scripts without capitals: words in quotation marks, and runs of Latin letters or Katakana. Digits join Latin
  letters ("F-15"); by themselves they are numbers.
- All of these: further words of a question are possible names. They count if an entity bears them, such as the
  title of a passage, and few passages name it.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec

ENGLISH = "en"
CASELESS = frozenset("ar bn fa gu he hi ja ka km kn ko lo ml mr my ne pa si ta te th ur zh".split())
"""Languages whose scripts have no capitals."""
CAPITALISES_NOUNS = frozenset({"de"})
"""Languages in which a capital tells no name, and after an ordinal begins a noun: "im 19. Jahrhundert"."""
POSSIBLE_NAMES = 2_000
"""Possible names of a question at most, all of which one statement looks up."""
LONGEST_NAME_WORDS = 5
LONGEST_NAME_LETTERS = 16
"""Letters of a possible name in a script that writes no spaces between words."""

_STOP_WORDS_OF = {"no": "nb"}
_LATIN = "A-Za-z\u00c0-\u024f"
_QUOTED = re.compile('[「『《〈“„«"]([^「」『』《》〈〉“”„«»"。！？!?\n]{2,60})[」』》〉”“»"]')
_FOREIGN_RUN = re.compile(
    rf"(?:[0-9]+-)?[{_LATIN}][{_LATIN}0-9]*(?:(?:[ .&'’-]|\. )(?:[{_LATIN}][{_LATIN}0-9]*|[0-9]+(?![0-9%])))*"
    "|[\u30a1-\u30fa\u30fc-\u30ff]+(?:[・＝][\u30a1-\u30fa\u30fc-\u30ff]+)*"
)
_UNSPACED_RUN = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff・]+"
)
# Vowels and tones that follow a letter of Thai, Lao, Burmese and Khmer.
_LETTER = re.compile(
    ".[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u17b6-\u17d3]*"
)
# Marks inside words of Arabic, Hebrew and scripts of India, which are no word characters of ``re``.
_MARKED = (
    "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963"
    "\u0980-\u0983\u09bc-\u09cd"
)
_WORD = re.compile(rf"[\w{_MARKED}]+(?:['’.-][\w{_MARKED}]+)*")


@lru_cache(maxsize=128)
def load_function_words(language: str) -> frozenset[str]:
    """Words of a language that are no names by themselves, in lower case; none where spaCy has no list."""
    module = f"spacy.lang.{_STOP_WORDS_OF.get(language, language)}"
    if not language.isalpha() or find_spec(module) is None or find_spec(f"{module}.stop_words") is None:
        return frozenset()
    return frozenset(word.lower() for word in import_module(f"{module}.stop_words").STOP_WORDS)


def find_caseless_names(text: str) -> list[str]:
    """Names in a text whose script has no capitals, in order."""
    spans = [match.span(1) for match in _QUOTED.finditer(text)]
    ends = iter([*spans, (len(text), len(text))])
    start, (quoted, end) = 0, next(ends)
    names = list(spans)
    while True:
        names += [match.span() for match in _FOREIGN_RUN.finditer(text, start, quoted) if len(match[0]) > 1]
        if quoted == len(text):
            return [text[first:last] for first, last in sorted(names)]
        start, (quoted, end) = end, next(ends)


def find_possible_names(text: str, language: str) -> list[str]:
    """Runs of words of a question that may be names, the longest first."""
    runs = [*_letter_runs(text), *_word_runs(text, language)]
    return sorted(dict.fromkeys(runs), key=len, reverse=True)[:POSSIBLE_NAMES]


def _word_runs(text: str, language: str) -> Iterator[str]:
    function_words = load_function_words(language)
    words = [(match.span(), match[0].lower() in function_words) for match in _WORD.finditer(text)]
    for first, ((start, _), is_empty) in enumerate(words):
        for (_, end), ends_empty in () if is_empty else words[first : first + LONGEST_NAME_WORDS]:
            if not ends_empty and end - start > 1:
                yield text[start:end]


def _letter_runs(text: str) -> Iterator[str]:
    for run in _UNSPACED_RUN.findall(text):
        letters: Sequence[str] = _LETTER.findall(run)
        for first in range(len(letters)):
            for last in range(first + 2, min(first + LONGEST_NAME_LETTERS, len(letters)) + 1):
                yield "".join(letters[first:last])
