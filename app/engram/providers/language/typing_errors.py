"""Typing errors of a question: words that a collection does not have, and the words of its own that were meant.

A word is mistyped if the collection has none of its terms. What may have been meant is made from the word itself,
by one change of a letter (Damerau 1964: a letter too few or too many, another one, or two in the wrong order), or
by accents. Then the lexical index says which of this it has. Of a longer word that has none, two changes are looked
for among the terms that begin as it does. So nothing is stored for it. If the collection has nothing near, a word
that the encoder knows may be meant. A word that only hidden passages have is neither known nor meant: what counts
is what the caller sees.

A word may also be written together where texts write it apart, or the other way round, and in languages with
compounds it may stand inside a longer one: see ``word_joints``.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, islice, product
from typing import Protocol

from engram.providers.language.characters import normalise_characters
from engram.providers.language.language_detection import detect_language
from engram.providers.language.lexical_terms import (
    WORD,
    choose_readings,
    find_spaced_words,
    fold_accents,
    stem,
    terms,
)
from engram.providers.language.name_rules import load_function_words
from engram.providers.language.word_joints import (
    HYPHENS,
    find_apart,
    find_containing,
    list_inside,
    list_joints,
    map_parts,
)

LETTERS_PER_CHANGE = 5
"""Letters that a word has to have for each change: nearly every shorter one is a letter away from many others. So a
shorter one is corrected only if what is meant stands beside another word of the question, or has
the same letters."""
LEAST_LETTERS = 3
MOST_LETTERS = 30
MOST_WORDS = 3
"""Unknown words that are corrected, at most: a question with more is about something else."""
MOST_TERMS = 10
"""Terms whose words are looked at, those of the most passages."""
MOST_CHANGES = 2
LEAST_WITH_ENDING = 7
"""Letters of a word that may be meant in a form that no change of a letter gives: Королёве for Королев."""
SAME_BEGINNING = 3
"""Letters that a longer word has to share with what was meant by two changes."""
ACCENTS = 3
"""Accents of a word that may be missing or wrong together."""
MOST_SPELLINGS = 3_000
"""Spellings that are made of a word in a language: so many by accents, those of fewest changes, and by letters."""
ROW = 128
"""Code points of which one script's letters lie together in Unicode."""
_LETTERS = ("Ll", "Lo", "Mn", "Mc")


class OwnWords(Protocol):
    """Occurrences of some terms in a collection, as far as the caller sees it."""

    def count_passages(self, terms: Iterable[str]) -> Mapping[str, int]:
        """Count the passages that have each term; terms that none has are absent."""
        ...

    def list_terms(self, beginning: str, shortest: int, longest: int) -> Sequence[str]:
        """List terms of so many letters that begin so, some if they are many, whoever may see them."""
        ...

    def list_containing(self, part: str) -> Sequence[str]:
        """List terms that contain a part, some if they are many, whoever may see them."""
        ...

    def sample_texts(self, terms: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return some texts that have each term."""
        ...


@dataclass(frozen=True, slots=True)
class Correction:
    """A word that the collection does not have, and the one that is searched for, in its place or beside it."""

    typed: str
    corrected: str


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a question: where it stands, and its terms in the languages that the question is read in.

    Attributes:
        text: as it is written; of two words that may be one, both together.
        parts: the terms of each of two words that may be one.
    """

    start: int
    end: int
    text: str
    terms: frozenset[str]
    parts: tuple[frozenset[str], ...] = ()

    @property
    def key(self) -> tuple[str, frozenset[str]]:
        """The word wherever it stands."""
        return self.text, self.terms


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words that questions found a collection to have, or not, as a caller sees it. Further questions add theirs.

    Attributes:
        passages: term -> passages that had it when they were counted.
        alone: words that no word of the collection is near, and two that are none together, each with its terms.
    """

    passages: dict[str, int] = field(default_factory=dict)
    alone: set[tuple[str, frozenset[str]]] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.passages) + len(self.alone)


def correct_question(
    text: str,
    languages: Mapping[str, int],
    open_words: Callable[[], AbstractContextManager[OwnWords]],
    vocabulary: Vocabulary,
    is_one_token: Callable[[str], bool],
    count_tokens: Callable[[Sequence[str]], Sequence[int]],
) -> tuple[str, list[Correction]]:
    """Return a question with the words that were meant in place of mistyped ones, and what was corrected.

    A word that may be right, and only lacking in the collection, stays in front of the word that may be meant.
    Function words, words with digits, short words with any capital, scripts without spaces between words, and
    questions in a language that no passage has stay as they are.

    Args:
        languages: of the passages -> passages of it.
        open_words: gives the words of the collection; it is not called where no word can be mistyped.
        vocabulary: what earlier questions found of these words.
        is_one_token: tells whether an encoder reads a word as one token. It does so with frequent words of a
            language, which hardly any typing error gives: then the collection just does not have the word.
        count_tokens: counts the tokens in which the encoder reads each text.
    """
    detected = detect_language(text)
    readings = choose_readings(languages, detected)
    if detected is not None and detected not in languages:
        return text, []
    words = list(_list_words(text, readings))
    known = vocabulary.passages
    unknown = [word for word in words if known.keys().isdisjoint(word.terms)]
    joined = list(_list_joined(text, unknown, readings)) if unknown or not HYPHENS.isdisjoint(text) else []
    if all(word.key in vocabulary.alone for word in (*unknown, *joined)):
        return text, []
    with open_words() as own:
        counted = [word.terms for word in words] + [one for pair in joined for one in (pair.terms, *pair.parts)]
        known |= own.count_passages(frozenset[str]().union(*counted))
        meant = dict(_find_joined(joined, vocabulary))
        unknown = [
            word
            for word in words
            if known.keys().isdisjoint(word.terms) and not any(one.start <= word.start < one.end for one in meant)
        ]
        meant |= _correct_words(words, unknown, readings, own, vocabulary, is_one_token)
    corrections = []
    for word in sorted(meant, key=lambda word: -word.start):  # so that places before it stay right
        typed = text[word.start : word.end]
        corrections.append(Correction(typed, meant[word]))
        prefix = f"{typed} " if _may_be_right(typed, meant[word], count_tokens) else ""
        text = text[: word.start] + prefix + meant[word] + text[word.end :]
    return text, corrections[::-1]


def _may_be_right(typed: str, meant: str, count_tokens: Callable[[Sequence[str]], Sequence[int]]) -> bool:
    """Whether an encoder reads the typed word as easily as the other one: it falls to pieces by typing errors.

    Words with the same letters in another order are seldom both right.
    """
    if sorted(_fold(typed)) == sorted(_fold(meant)):
        return False
    typed_tokens, meant_tokens = count_tokens([typed, meant])
    return typed_tokens <= meant_tokens


def _list_joined(text: str, unknown: Iterable[_Word], readings: Collection[str]) -> Iterator[_Word]:
    """List what may be one word: two with a hyphen, or with a space where the collection lacks one of them."""
    doubtful = {word.start for word in unknown}
    for start, first, between, second in list_joints(text):
        end = start + len(first + between + second)
        if between == " " and doubtful.isdisjoint((start, end - len(second))):
            continue
        parts = _read_word(first, readings), _read_word(second, readings)
        together = (first + second).casefold()  # "refunds Warsaw" is no refundsWarsaw
        if any(parts) and LEAST_LETTERS <= len(together) <= MOST_LETTERS:
            yield _Word(start, end, together, _read_word(together, readings), parts)


def _find_joined(joined: Iterable[_Word], vocabulary: Vocabulary) -> Iterator[tuple[_Word, str]]:
    """Find two words that the collection has as one, and one of which it does not have."""
    known = vocabulary.passages.keys()
    end = 0
    for pair in joined:
        if known.isdisjoint(pair.terms) or not any(part and known.isdisjoint(part) for part in pair.parts):
            vocabulary.alone.add(pair.key)
        elif pair.start >= end:
            end = pair.end
            yield pair, pair.text


def _correct_words(
    words: Sequence[_Word],
    unknown: Sequence[_Word],
    readings: Collection[str],
    own: OwnWords,
    vocabulary: Vocabulary,
    is_one_token: Callable[[str], bool],
) -> dict[_Word, str]:
    """Correct the unknown ones of a question's words, unless they are too many."""
    known = vocabulary.passages
    whole = [word for word in unknown if is_one_token(word.text)]
    doubtful = [word for word in unknown if word not in whole]
    context = {
        word.text.casefold(): 1 / max(known[term] for term in word.terms & known.keys())
        for word in words
        if not known.keys().isdisjoint(word.terms)
    }
    meant = {}
    for word in [*whole[:MOST_WORDS], *(doubtful if len(doubtful) <= MOST_WORDS else ())]:
        if word.key in vocabulary.alone:
            continue
        corrected = (
            _find_apart(_fold(word.text), readings, own)
            if word in whole
            else _find_meant(word.text, readings, own, context, is_one_token)
        )
        if corrected is not None:
            meant[word] = corrected
        elif word in whole or len(word.text) >= LETTERS_PER_CHANGE:  # whatever stands beside it
            vocabulary.alone.add(word.key)
    return meant


def _find_apart(folded: str, readings: Collection[str], own: OwnWords) -> str | None:
    """Return a word that the encoder knows as texts write it with a hyphen."""
    part_terms = map_parts(folded, readings)
    counts = own.count_passages(frozenset[str]().union(*part_terms.values()))
    return find_apart(folded, part_terms, counts, own.sample_texts, is_hyphen=True)


def _find_meant(
    word: str,
    readings: Collection[str],
    own: OwnWords,
    context: Mapping[str, float],
    is_one_token: Callable[[str], bool],
) -> str | None:
    """Return the word that a mistyped one was meant to be; None if none is near.

    Args:
        context: other words of the question in lower case, each with 1 over the passages that have it.
    """
    folded = _fold(word)
    is_short, is_long = len(folded) < LETTERS_PER_CHANGE, len(folded) >= LEAST_WITH_ENDING
    variants, part_terms = _list_variants(folded, readings), map_parts(folded, readings)
    counts = own.count_passages(variants.keys() | set[str]().union(*part_terms.values()))
    meant = find_apart(folded, part_terms, counts, own.sample_texts, is_hyphen=False) or _choose_word(
        {term: counts[term] for term in variants.keys() & counts.keys()},
        own,
        context,
        variants.__getitem__,
        lambda term, written: written in variants[term] or (is_long and _is_form(written, variants[term])),
        folded,
        _count_letters(folded, readings),
        is_short=is_short,
    )
    if meant is None:
        meant = _find_longer(folded, readings, own)
    if meant is None and len(folded) >= MOST_CHANGES * LETTERS_PER_CHANGE:
        meant = _find_farther(folded, readings, own, context)
    if meant is None and not is_short and word == folded:  # names that the collection lacks stay
        meant = _find_frequent(set[str]().union(*variants.values()), is_one_token)
    return meant


def _is_form(written: str, spellings: Collection[str]) -> bool:
    """Whether a word is one of some spellings, with other accents or with an ending."""
    plain = fold_accents(written)
    return any(
        one in (written[: len(one)], plain[: len(one)]) and len(written) <= len(one) + MOST_CHANGES
        for one in spellings
        if one[:1] in (written[:1], plain[:1])
    )


def _find_longer(folded: str, readings: Collection[str], own: OwnWords) -> str | None:
    """Return the compound of most passages that contains a word."""
    inside = list_inside(folded, readings)
    counts = own.count_passages({term for part in inside for term in own.list_containing(part)}) if inside else {}
    if not counts:
        return None
    frequent = sorted(counts, key=lambda term: (-counts[term], term))[:MOST_TERMS]
    texts = own.sample_texts(frequent)
    return find_containing([text for term in frequent for text in texts.get(term, ())], inside)


def _find_frequent(spellings: Collection[str], is_one_token: Callable[[str], bool]) -> str | None:
    """Return the one spelling that an encoder reads as one token; None if it does so with none or several."""
    frequent = [one for one in spellings if len(one) >= LETTERS_PER_CHANGE and is_one_token(one)]
    return frequent[0] if len(frequent) == 1 else None


def _find_farther(
    folded: str, readings: Collection[str], own: OwnWords, context: Mapping[str, float]
) -> str | None:
    """Return the word of the collection that is two changes away from a long one."""
    near = {
        term
        for stemmed in {stem([folded], language)[0] for language in readings}
        for term in own.list_terms(
            stemmed[:SAME_BEGINNING], len(stemmed) - MOST_CHANGES, len(stemmed) + MOST_CHANGES
        )
        if _is_two_changes_away(stemmed, term)
    }
    counts = own.count_passages(near) if near else {}
    return _choose_word(
        counts,
        own,
        context,
        lambda _: [folded],
        lambda _, written: _is_two_changes_away(folded, written),
        folded,
        _count_letters(folded, readings),
    )


def _choose_word(
    counts: Mapping[str, int],
    own: OwnWords,
    context: Mapping[str, float],
    list_alike: Callable[[str], Collection[str]],
    is_near: Callable[[str, str], bool],
    typed: str,
    letters: int,
    *,
    is_short: bool = False,
) -> str | None:
    """Choose a word that texts write near the typed one: of the term beside most rare words of the question.

    One that is spelled so comes before a form of it. What stands beside a term is added up over its passages, as
    the texts of some tell it: a rare term has all of its texts among these.

    Args:
        counts: term -> passages that have it; of equals the more frequent term is meant.
        list_alike: spellings near which texts may write a term.
        is_near: whether a text writes a term, the first, near the typed word.
        letters: that a wrong or needless letter may be. Each word that such a change gives is so much less likely
            than one with letters left out or exchanged (Kernighan, Church and Gale 1990).
        is_short: whether what is meant has to stand beside another word; not where two letters are just exchanged,
            since few words are that near.
    """
    frequent = sorted(counts, key=lambda term: (-counts[term], term))[:MOST_TERMS]
    texts = own.sample_texts(frequent) if frequent else {}
    candidates: list[tuple[bool, float, float, str]] = []
    for term in frequent:
        written: Counter[str] = Counter()
        shared = 0.0
        spellings = list_alike(term)
        for text in texts.get(term, ()):
            near = [word for word in _list_similar(text, spellings) if is_near(term, _fold(word))]
            if near:
                written.update(near)
                folded = text.casefold()
                shared += sum(weight for word, weight in context.items() if word in folded)
        if not written:
            continue
        usual = max(written, key=lambda word: (_fold(word) in spellings, written[word], word))
        if shared or not is_short or sorted(_fold(usual)) == sorted(typed):
            likely = 1 if _has_all_letters(typed, _fold(usual)) else 1 / letters
            beside = counts[term] * shared / len(texts[term])
            candidates.append((_fold(usual) in spellings, likely * beside, likely * counts[term], usual))
    return max(candidates)[-1] if candidates else None


def _has_all_letters(typed: str, meant: str) -> bool:
    """Whether a typed word has no letter that the word which was meant lacks: some were left out or exchanged."""
    return not Counter(fold_accents(typed)) - Counter(fold_accents(meant))


def _list_similar(text: str, spellings: Collection[str]) -> list[str]:
    """List the words of a text with the first letter and about the length of a spelling."""
    initials = {letter for one in spellings for letter in (one[0], one[0].upper())}
    shortest, longest = min(map(len, spellings)) - MOST_CHANGES, max(map(len, spellings)) + MOST_CHANGES
    words = WORD.findall(normalise_characters("NFC", text))
    return [word for word in words if word[0] in initials and shortest <= len(word) <= longest]


def _fold(word: str) -> str:
    return normalise_characters("NFC", word).casefold()


def _is_two_changes_away(one: str, other: str) -> bool:
    is_alike = one[:SAME_BEGINNING] == other[:SAME_BEGINNING] and abs(len(one) - len(other)) <= MOST_CHANGES
    # A change gives each of them one letter at most that the other lacks.
    is_alike = is_alike and max(len({*one} - {*other}), len({*other} - {*one})) <= MOST_CHANGES
    return is_alike and measure_distance(one, other) <= MOST_CHANGES


def measure_distance(one: str, other: str) -> int:
    """Count the changes of letters between two words (optimal string alignment of Damerau 1964)."""
    before, row = list[int](), list(range(len(other) + 1))
    for at, letter in enumerate(one):
        earlier, before, row = before, row, [at + 1]
        for to, wanted in enumerate(other):
            steps = min(before[to] + (letter != wanted), before[to + 1] + 1, row[to] + 1)
            if at and to and letter == other[to - 1] and wanted == one[at - 1]:
                steps = min(steps, earlier[to - 1] + 1)
            row.append(steps)
    return row[-1]


def _list_words(text: str, readings: Collection[str]) -> Iterator[_Word]:
    """List the words of a question that may be corrected."""
    function_words = frozenset[str]().union(*map(load_function_words, readings))
    for start, word in find_spaced_words(text):
        is_short = len(word) < LETTERS_PER_CHANGE
        is_code = any(one.isdigit() for one in word) or (is_short and word != word.lower())
        if is_code or not LEAST_LETTERS <= len(word) <= MOST_LETTERS or word.casefold() in function_words:
            continue
        word_terms = _read_word(word, readings)
        if word_terms:
            yield _Word(start, start + len(word), word, word_terms)


def _read_word(word: str, readings: Collection[str]) -> frozenset[str]:
    return frozenset(term for language in readings for term in terms(word, language))


def _list_variants(word: str, readings: Collection[str]) -> dict[str, set[str]]:
    """Map each term that may have been meant to the spellings that give it."""
    variants: dict[str, set[str]] = {}
    for language in readings:
        alphabet = _find_alphabet(language, _find_rows(word))
        # An alphabet lists its letters by code point: what a long word in a large one loses is rare.
        letters = alphabet[: MOST_SPELLINGS // (2 * len(word) + 1)]
        spellings = [*islice(_list_accented(word, alphabet), MOST_SPELLINGS), *_list_edits(word, letters)]
        for spelling, term in zip(spellings, stem(spellings, language), strict=True):
            if len(spelling) >= LEAST_LETTERS:
                variants.setdefault(term, set()).add(spelling)
    return variants


def _list_accented(word: str, alphabet: str) -> Iterator[str]:
    """List spellings of a word that differ in accents alone, those of fewest changes first."""
    alike = [_group_accents(alphabet).get(fold_accents(letter), "").replace(letter, "") for letter in word]
    places = [at for at, letters in enumerate(alike) if letters]
    for count in range(1, ACCENTS + 1):
        for changed in combinations(places, count):
            for letters in product(*(alike[at] for at in changed)):
                spelling = list(word)
                for at, letter in zip(changed, letters, strict=True):
                    spelling[at] = letter
                yield "".join(spelling)


@lru_cache(maxsize=128)
def _group_accents(alphabet: str) -> dict[str, str]:
    """Map each letter without accents to all letters that it stands for."""
    groups: dict[str, str] = {}
    for letter in alphabet:
        groups[fold_accents(letter)] = groups.get(fold_accents(letter), "") + letter
    return groups


def _list_edits(word: str, alphabet: Collection[str]) -> Iterator[str]:
    """List what is one change of a letter away from a word: transpositions first, deletions last."""
    places = range(len(word))
    yield from (word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in places[:-1])
    yield from (word[:at] + letter + word[at:] for at in (*places, len(word)) for letter in alphabet)
    yield from (word[:at] + letter + word[at + 1 :] for at in places for letter in alphabet)
    yield from (word[:at] + word[at + 1 :] for at in places)


def _count_letters(word: str, readings: Collection[str]) -> int:
    """Count the letters that may stand in a word's place, in the largest alphabet of some languages."""
    return max(len(_find_alphabet(language, _find_rows(word))) for language in readings)


def _find_rows(word: str) -> frozenset[int]:
    return frozenset(ord(letter) // ROW for letter in word)


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
