"""The terms that passages and questions are matched by word for word: what BM25 counts.

Words are stemmed by the language of their text where Snowball has a stemmer for it. Runs of a script that writes
no spaces between words (Han, Kana, Thai, Lao, Khmer, Burmese), and of Hangul, whose words take endings, give their
pairs of neighbouring letters. Each Han letter, often a word by itself, is a term too: that raised nDCG@10 from
0.960 to 0.964 in Chinese and from 0.910 to 0.917 in Japanese. `evaluation/measurements/languages.md` has figures.

Measured as recall@5 / @10 of BM25 alone (k1 1.5, b 0.75), mean over five English data sets of 4,209 to 8,618
passages: Lucene's 33 stop words and no stemming 0.652 / 0.728, this 0.667 / 0.745. Stems help where questions and
passages inflect differently (scifact 0.733 -> 0.774, hotpotqa 0.721 -> 0.744 at 5), at no measured loss elsewhere.
Function words are left out in English only: spaCy's lists helped in four of six other languages and hurt in two.
"""

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import Stemmer

from engram.providers.language.characters import normalise_characters
from engram.providers.language.chinese_scripts import CHINESE, simplify
from engram.providers.language.language_detection import detect_language
from engram.providers.language.name_rules import load_function_words
from engram.providers.language.name_words import FUNCTION_WORDS

ANALYSER = 6
"""Which analysis a passage's stored terms come from. Raise it with whatever gives other terms for the same text."""
MAX_TERM_CHARACTERS = 64
"""Longer words are cut, here and in questions alike; their key would not fit an index page."""
_STEMMERS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish",
    "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian",
    "it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil",
    "tr": "turkish",
}  # fmt: skip
SHARE = 0.01
"""Share of a collection's passages from which on every question is read in their language too. Terms of fewer
passages are rare, and would lead away from what was asked: a German passage among 1,518 French ones cost PIAF 0.006
of nDCG@10, and eight foreign ones among 4,209 English ones cost 2WikiMultihopQA 0.003."""
_UNACCENTED = frozenset({"en", "id"})
"""Languages that write no accents: one on a foreign name goes before its stem is taken."""
_TWO_LETTERS_I = frozenset({"tr", "az"})
"""Languages in which I with a dot and without are two letters."""
_LOWER_I = str.maketrans({"İ": "i", "I": "ı"})
_PERSIAN = str.maketrans({"ك": "ک", "ي": "ی", "ى": "ی"})
"""Letters that Arabic keyboards write for those of Persian."""
_STROKES = str.maketrans(
    {"ı": "i", "ł": "l", "ø": "o", "đ": "d", "ħ": "h", "ŧ": "t", "ð": "d", "þ": "th", "œ": "oe", "æ": "ae"}
)
"""Latin letters whose stroke or joint is no accent of Unicode's, but is left out like one."""
_INVISIBLE = re.compile("[\u00ad\u0640\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
"""Soft hyphens, joiners, direction marks, and the stroke that lengthens Arabic words: no part of a word."""
_NOT_ASCII_DIGIT = re.compile(r"(?![0-9])\d")
_APOSTROPHES = frozenset(("'", "\u2019", "\u02bc"))
_DOTTED = re.compile(r"(?<![\w.])\d+(?:\.\d+)+(?!\w)")
"""A version, a section or a decimal: "4.2.10" is a term, and so is "10" beside it."""
_SIGNED = re.compile(r"(?<!\w)([^\W\d_]\w*)(\+\+|[+#])(?!\w)")
"""A word whose sign tells it from others: C++, C#, F#."""
_JOINED = re.compile("(?<!\\w)(?=(\\w+)\u200c(\\w+))")
"""Two parts of a word with a non-joiner between them."""
_HUMP = re.compile("[a-z][A-Z]")
_LETTERS = re.compile("[A-Za-z]+")
_HUMPED_PART = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
LEAST_PART = 3
"""Letters that a part of a word has to have to be a term as well."""
_HEBREW_PREFIXES = re.compile("ו?(?:לכש|כש|מש|ש)?[בכלמ]?ה?")
"""And, when, from, that, in, like, to and the, which Hebrew writes as letters before the word."""
_LETTER_A = re.compile(r"(?<=[a-z] )(?:A(?= [a-z])|[Aa](?=[.,;:?!)]|\s*$))")
"""The letter where English writes its article small, or no word follows: vitamin A is good, lack of vitamin a."""
_FUNCTION_WORDS = {"en": FUNCTION_WORDS}
# Thai and Lao, Burmese, Khmer, Kana and Han, Hangul.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af"
)
# Marks on letters are no word characters of ``re``, but vowels of many scripts.
_MARKS = "".join(c for c in map(chr, range(0x300, 0x1F000)) if unicodedata.category(c) in ("Mn", "Mc"))
# The look ahead is for time: most words end in ASCII, and a set of 2,155 marks is slow to look into.
WORD = re.compile(rf"\w+(?:(?=[^\x00-\x7f])[{_MARKS}]+\w*)*")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_HIRAGANA = re.compile("[\u3041-\u309f]+")
_SCRIPT_RUN = re.compile(rf"(?:[{_UNSPACED}][{_MARKS}]*)+|(?:[^{_UNSPACED}][{_MARKS}]*)+")
_LETTER = re.compile(rf".[{_MARKS}]*", re.DOTALL)
# Vowel points of Hebrew and Arabic and the dot below letters of Devanagari, which most texts leave out.
_POINTS = re.compile("[\u0591-\u05c7\u064b-\u0652\u0670\u093c]")
# Scripts in which a letter with an accent is compared as the letter without it; elsewhere marks are letters.
_FOLDED = re.compile("[a-z\u00c0-\u024f\u0370-\u052f\u1e00-\u1fff]")
_local = threading.local()


def terms(text: str, language: str) -> list[str]:
    """Terms of ``text`` repetitions included; function words go, and letters and digits tied to a word.

    Case does not count, nor does how a character is composed, nor do accents of Latin, Greek and Cyrillic: "Café"
    and "cafes" give the same term.

    Args:
        language: ISO 639 code; words of one without a stemmer stay as they are.
    """
    return stem(_content_words(_split_words(text, language), language), language)


def content_terms(text: str, language: str) -> list[str]:
    """Terms of ``text`` that carry meaning: without function words of spaCy's lists, and without pairs of Hiragana.

    BM25 keeps these words (see above), since they are frequent and so weigh little. They do harm where shares of
    words are compared, because question words are in hardly any passage.
    """
    if language in _FUNCTION_WORDS:
        return terms(text, language)
    function_words = load_function_words(language)
    if _IS_UNSPACED.search(text) is not None:
        text = _match_function_words(language).sub(" ", text)
    words = [word for word in _split_words(text, language) if word not in function_words]
    return stem((word for word in words if _HIRAGANA.fullmatch(word) is None), language)


@lru_cache(maxsize=32)
def _match_function_words(language: str) -> re.Pattern[str]:
    """Match a language's function words of several letters inside a run, the longest first."""
    long = sorted((word for word in load_function_words(language) if len(word) > 1), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, long)) or r"(?!)")


@dataclass(frozen=True, slots=True)
class QuestionTerms:
    """Terms of a question.

    Attributes:
        counts: how often the question has each.
        size: terms of its longest reading, repetitions included; less than those of ``counts`` where it was read in
            several languages that take different stems.
        language: of the question, or of the collection where it has one only; None where it cannot be told.
    """

    counts: Counter[str]
    size: int
    language: str | None


def read_question(text: str, languages: Mapping[str, int]) -> QuestionTerms:
    """Return the terms by which a question is matched with passages of these languages.

    The question is read in its own language, and in each that at least ``SHARE`` of the passages have, since it may
    share a name or a word with these. A term counts as often as the reading that has it most often. Function words
    of its own language are left out of all readings; if its language cannot be told, those of all the languages.

    Args:
        languages: language -> passages of it.
    """
    detected = detect_language(text)
    own = detected if len(languages) > 1 else None
    read = choose_readings(languages, own)
    of_question = read if own is None else [own]
    readings = [Counter(_read_in(text, language, of_question)) for language in read or ("",)]
    counts = readings[0]
    for reading in readings[1:]:
        counts = counts | reading
    only = next(iter(languages)) if len(languages) == 1 else None
    return QuestionTerms(counts, max(reading.total() for reading in readings), detected or only)


def choose_readings(languages: Mapping[str, int], own: str | None) -> list[str]:
    """Choose the languages of passages that a question is read in, whose ``own`` language is None if not known."""
    least = SHARE * sum(languages.values())
    read = [language for language, passages in languages.items() if passages >= least]
    return [*read, own] if own in languages and own not in read and own is not None else read


def find_spaced_words(text: str) -> Iterator[tuple[int, str]]:
    """Find the words of scripts that write spaces between words: where each begins, and as it is written."""
    return ((word.start(), word[0]) for word in WORD.finditer(text) if _IS_UNSPACED.search(word[0]) is None)


def _read_in(text: str, language: str, of_question: Iterable[str]) -> list[str]:
    """Return a question's terms in a language, without function words of the languages that it may be in."""
    words = _split_words(text, language)
    for one in (*of_question, language):
        words = _content_words(words, one)
    return stem(words, language)


def question_terms(text: str, languages: Mapping[str, int]) -> Counter[str]:
    """Count the terms that ``read_question`` finds."""
    return read_question(text, languages).counts


def surface_words(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Term -> the word that most often stands for it in ``texts``, as it is written there; of equals the first.

    A term that no single word gives by itself is absent: one that was cut, a pair of letters, or a part of a word.

    Args:
        texts: each with its language.
    """
    words = Counter(
        (word, language) for text, language in texts for word in WORD.findall(normalise_characters("NFC", text))
    )
    written: dict[str, Counter[str]] = {}
    for (word, language), times in words.items():
        word_terms = terms(word, language) if len(word) <= MAX_TERM_CHARACTERS else []
        if len(word_terms) == 1:
            written.setdefault(word_terms[0], Counter())[word] += times
    return {term: counter.most_common(1)[0][0] for term, counter in written.items()}


def _split_words(text: str, language: str) -> list[str]:
    """Split a text into case-folded words, single letters and digits, dotted numbers, pairs of letters, and parts.

    What the parts of words give stands last.
    """
    composed = normalise_characters("NFKC", text)
    labels: list[str] = []
    if language == "fa":  # it writes compounds and endings behind a non-joiner, a space, or nothing
        labels = [first + second for first, second in _JOINED.findall(composed.translate(_PERSIAN))]
        composed = composed.replace("\u200c", " ")
    composed = _INVISIBLE.sub("", composed)
    if language == "en":
        labels = ["A"] * len(_LETTER_A.findall(composed))
    pieces = _split_humps(composed) if _HUMP.search(composed) else []
    if language in _TWO_LETTERS_I:
        composed = composed.translate(_LOWER_I)
    folded = composed.casefold()
    if not folded.isascii():
        folded = _fold_script(folded, language)
    words = labels + _DOTTED.findall(folded)
    if "+" in folded or "#" in folded:
        folded = _SIGNED.sub(lambda signed: _keep_sign(signed, words), folded)
    is_unspaced = _IS_UNSPACED.search(folded) is not None
    for match in WORD.finditer(folded):
        word = match[0]
        if len(word) == 1 and _is_tied(folded, match.start(), match.end()):
            continue
        if is_unspaced:
            words += [piece for run in _SCRIPT_RUN.findall(word) for piece in _split_run(run)]
        else:
            words.append(word)
            if language == "he":
                pieces += _cut_prefixes(word)
    return words + pieces


def _split_humps(text: str) -> list[str]:
    """List the parts of identifiers: get, user and name of getUserName, but none of YouTube or McDonald."""
    pieces: list[str] = []
    for word in _LETTERS.findall(text):
        if _HUMP.search(word):
            parts = _HUMPED_PART.findall(word)
            long = [part.lower() for part in parts if len(part) >= LEAST_PART]
            if len(long) > 1 and (word[0].islower() or len(parts) > 2):
                pieces += long
    return pieces


def _cut_prefixes(word: str) -> list[str]:
    """List what may be left of a Hebrew word without the prefixes of one letter that it begins with."""
    prefixes = _HEBREW_PREFIXES.match(word)
    end = prefixes.end() if prefixes else 0
    return [word[at:] for at in range(1, end + 1) if len(word) - at >= LEAST_PART]


def _fold_script(text: str, language: str) -> str:
    """Return a text with ASCII digits, without vowel points, and with one form of each letter of its language."""
    text = _NOT_ASCII_DIGIT.sub(lambda digit: str(unicodedata.digit(digit[0])), text)
    text = _POINTS.sub("", normalise_characters("NFC", text))
    if language in CHINESE:
        return simplify(text)
    return text.translate(_PERSIAN) if language == "fa" else text


def _keep_sign(signed: re.Match[str], words: list[str]) -> str:
    """Add a word with its sign to ``words``; of one letter, the letter alone is then no term: C++ is not C."""
    words.append(signed[0])
    return " " if len(signed[1]) == 1 else signed[1] + " "


def _is_tied(text: str, start: int, end: int) -> bool:
    """Whether an apostrophe or a dot ties a letter or digit to a word, as in "Henry's", "l'école" and "e.g.".

    Such a piece says little by itself: as a term it cost SciFact .002 of nDCG@10.
    """
    if text[max(start - 1, 0) : start] == "." and text[max(start - 2, 0) : start - 1].isalnum():
        return True
    if text[end : end + 1] == "." and text[end + 1 : end + 2].isalnum():
        return True
    before = start > 1 and text[start - 1] in _APOSTROPHES and text[start - 2].isalnum()
    following = text[end + 1 : end + 3]
    after = text[end : end + 1] in _APOSTROPHES and len(following) == 2 and following.isalnum()
    return before or after


def _split_run(run: str) -> list[str]:
    """Split a run of one script into a word, or letters and their pairs; a letter's marks are part of it."""
    if _IS_UNSPACED.match(run) is None:
        return [run]
    letters = _LETTER.findall(run)
    if len(letters) == 1:
        return letters
    words = [letter for letter in letters if _HAN.match(letter)]
    return words + [first + second for first, second in pairwise(letters)]


def _content_words(words: Iterable[str], language: str) -> list[str]:
    function_words: Collection[str] = _FUNCTION_WORDS.get(language, ())
    return [word for word in words if word not in function_words]


def stem(words: Iterable[str], language: str) -> list[str]:
    """Return the term of each word, which is in lower case."""
    cut = [word[:MAX_TERM_CHARACTERS] for word in words]
    stemmer = _stemmer(language)
    if stemmer is None:
        return [fold_accents(word) for word in cut]
    if language in _UNACCENTED:
        stems: list[str] = stemmer.stemWords([fold_accents(word) for word in cut])
        return stems
    return [fold_accents(word) for word in stemmer.stemWords(cut)]


def fold_accents(word: str) -> str:
    """Return a word without the accents of Latin, Greek and Cyrillic letters."""
    if word.isascii():
        return word
    kept: list[str] = []
    is_folded = False
    for character in unicodedata.normalize("NFD", word):
        if not unicodedata.combining(character):
            is_folded = _FOLDED.match(character) is not None
        elif is_folded:
            continue
        kept.append(character)
    return unicodedata.normalize("NFC", "".join(kept)).translate(_STROKES)


def _stemmer(language: str) -> "Stemmer.Stemmer | None":
    """This thread's own: one must not be shared."""
    if language not in _STEMMERS:
        return None
    stemmers: dict[str, Stemmer.Stemmer] = _local.__dict__
    if language not in stemmers:
        stemmers[language] = Stemmer.Stemmer(_STEMMERS[language])
    return stemmers[language]
