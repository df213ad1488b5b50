"""Typing errors of a question: words that a collection does not have, and the words of its own that were meant.

A word is mistyped if the collection has none of its terms. What may have been meant is made from the word itself, by
one change of a letter (Damerau 1964: a letter too few or too many, another one, or two in the wrong order), or by
accents. Then the lexical index says which of this it has. So nothing is stored for it, and a word that only passages
have which the caller may not see is never met: neither is it known, nor does it correct.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from typing import Protocol

from engram.providers.language.language_detection import detect_language
from engram.providers.language.lexical_terms import choose_readings, find_spaced_words, fold_accents, stem, terms
from engram.providers.language.name_rules import load_function_words

LEAST_LETTERS = 4
"""Letters of a word that is corrected, at least: nearly every shorter one is a letter away from many others."""
MOST_LETTERS = 30
MOST_WORDS = 3
"""Unknown words that are corrected, at most: a question with more is about something else, or in another language."""
MOST_TERMS = 5
"""Terms whose words are looked at, those of the most passages."""
ACCENTS = 3
"""Accents of a word that may be missing or wrong together."""
ROW = 128
"""Code points of which one script's letters lie together in Unicode."""
_LETTERS = ("Ll", "Lo", "Mn", "Mc")


class OwnWords(Protocol):
    """What a collection has of some terms, as far as the caller sees it."""

    def count_passages(self, terms: Sequence[str]) -> Mapping[str, int]:
        """Count the passages that have each term; terms that none has are absent."""
        ...

    def sample_texts(self, terms: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return some texts that have each term."""
        ...


@dataclass(frozen=True, slots=True)
class Correction:
    """A word that the collection does not have, and the one that it is taken for."""

    typed: str
    corrected: str


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a question: where it stands, and its terms in the languages that the question is read in."""

    start: int
    text: str
    terms: frozenset[str]


def correct_question(text: str, languages: Mapping[str, int], own: OwnWords, is_whole: Callable[[str], bool]) -> tuple[str, list[Correction]]:
    """Return a question with words that the collection has in place of mistyped ones, and what was corrected.

    Function words, words with digits or capitals inside, scripts without spaces between words, and questions in a
    language that no passage has stay as they are.

    Args:
        languages: of the passages -> passages of it.
        is_whole: tells whether an encoder reads a word as one token. It does so with the words of a language that
            are frequent, which hardly any typing error gives: then the collection just does not have the word.
    """
    detected = detect_language(text)
    readings = choose_readings(languages, detected)
    if detected is not None and detected not in languages:
        return text, []
    words = list(_list_words(text, readings))
    known = own.count_passages(sorted({term for word in words for term in word.terms})) if words else {}
    unknown = [word for word in words if known.keys().isdisjoint(word.terms) and not is_whole(word.text)]
    if not unknown or len(unknown) > MOST_WORDS:
        return text, []
    variants = [_list_variants(word.text, readings) for word in unknown]
    counts = own.count_passages(sorted(set().union(*variants)))
    frequent = [sorted(counts.keys() & meant.keys(), key=counts.__getitem__)[-MOST_TERMS:] for meant in variants]
    texts = own.sample_texts(sorted(set().union(*frequent)))
    corrections = []
    for word, meant, likely in reversed(list(zip(unknown, variants, frequent, strict=True))):
        corrected = _choose_word(meant, likely[::-1], texts)
        if corrected is not None:  # from the end of the question on, so that earlier places stay right
            text = text[: word.start] + corrected + text[word.start + len(word.text) :]
            corrections.append(Correction(word.text, corrected))
    return text, corrections[::-1]


def _choose_word(
    meant: Mapping[str, Collection[str]], likely: Sequence[str], texts: Mapping[str, Sequence[str]]
) -> str | None:
    """Choose the most frequent word that texts write as one of the spellings of the first term that they do."""
    for term in likely:
        words = (word for text in texts.get(term, ()) for _, word in find_spaced_words(text))
        written = Counter(word for word in words if word.casefold() in meant[term])
        if written:
            return max(written, key=written.__getitem__)
    return None


def _list_words(text: str, readings: Collection[str]) -> Iterator[_Word]:
    """List the words of a question that may be corrected."""
    function_words = frozenset[str]().union(*map(load_function_words, readings))
    for start, word in find_spaced_words(text):
        is_code = any(one.isdigit() for one in word) or word[1:] != word[1:].lower()
        if is_code or not LEAST_LETTERS <= len(word) <= MOST_LETTERS or word.casefold() in function_words:
            continue
        word_terms = frozenset(term for language in readings for term in terms(word, language))
        if word_terms:
            yield _Word(start, word, word_terms)


def _list_variants(word: str, readings: Collection[str]) -> dict[str, set[str]]:
    """Map each term that may have been meant to the spellings that give it."""
    folded = word.casefold()
    variants: dict[str, set[str]] = {}
    for language in readings:
        alphabet = _find_alphabet(language, frozenset(ord(letter) // ROW for letter in folded))
        spellings = [*_list_accented(folded, alphabet), *_list_edits(folded, alphabet)]
        for spelling, term in zip(spellings, stem(spellings, language), strict=True):
            variants.setdefault(term, set()).add(spelling)
    return variants


def _list_accented(word: str, alphabet: Collection[str]) -> Iterator[str]:
    """List spellings of a word that differ in accents alone, those with the fewest changes first."""
    alike = [[other for other in alphabet if other != letter and fold_accents(other) == fold_accents(letter)]
             for letter in word]
    places = [at for at, letters in enumerate(alike) if letters]
    for count in range(1, ACCENTS + 1):
        for changed in combinations(places, count):
            for letters in product(*(alike[at] for at in changed)):
                spelling = list(word)
                for at, letter in zip(changed, letters, strict=True):
                    spelling[at] = letter
                yield "".join(spelling)


def _list_edits(word: str, alphabet: Collection[str]) -> Iterator[str]:
    """List what is one change of a letter away from a word: transpositions first, deletions last."""
    places = range(len(word))
    yield from (word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in places[:-1])
    yield from (word[:at] + letter + word[at:] for at in (*places, len(word)) for letter in alphabet)
    yield from (word[:at] + letter + word[at + 1 :] for at in places for letter in alphabet)
    yield from (word[:at] + word[at + 1 :] for at in places)


@lru_cache(maxsize=128)
def _find_alphabet(language: str, rows: frozenset[int]) -> str:
    """Return the small letters and the marks of a language's function words and of rows of Unicode.

    A row has a whole alphabet of most scripts. Of the first one the letters are a to z, and what Latin languages
    write beside these is in their function words.
    """
    characters = {chr(point) for row in rows for point in range(row * ROW, (row + 1) * ROW)}
    characters.update(*load_function_words(language))
    return "".join(
        sorted(one for one in characters if unicodedata.category(one) in _LETTERS and one.casefold() == one)
    )
