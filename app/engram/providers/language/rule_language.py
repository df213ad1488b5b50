"""Names by rule: runs of capitalised words, found as a pattern over one class letter per spaCy token.

``name_rules`` says how other languages than English differ.

Serves when no trained pipeline is installed. It knows no gazetteer and no statistics, so it is fast and its
mistakes are predictable; whether "Paris" is a city or a person it cannot say, and retrieval does not ask.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

from engram.core.text.temporal import time_constraint
from engram.providers.language.entity_names import LONG_RUN, select_distinct_entities
from engram.providers.language.language_detection import detect_language
from engram.providers.language.language_protocol import (
    NAMES_PER_QUESTION,
    PassageText,
    QuestionAnalysis,
    SentenceAnalysis,
    group_by_passage,
)
from engram.providers.language.name_rules import (
    CAPITALISES_NOUNS,
    CASELESS,
    ENGLISH,
    find_caseless_names,
    find_possible_names,
    load_function_words,
)
from engram.providers.language.name_words import (
    ADJECTIVE_SUFFIXES,
    ARTICLES,
    CALENDAR_WORDS,
    FUNCTION_WORDS,
    NAME_PARTICLES,
    PREPOSITIONS,
)
from engram.providers.language.sentence_splitter import split_sentences

# Token classes: C capitalised word, F capitalised function word, M month or weekday, L single letter, N number,
# Y year or range of years, k particle inside names, t "the", j another preposition or article, q quotation mark,
# f another function word, x anything else; & : ( ) stand for themselves.
_WORD = "[CFML]"
# The first letter stands before its conditions so that the search skips to it.
_NAME = re.compile(rf"[CFMLNY](?:(?<={_WORD})|(?:(?<=N)|(?<=tY))(?={_WORD}))(?:[NY]|(?:k{{1,2}}t?|t|&|:)?{_WORD})*")
# "Mercury (planet)": a question that qualifies a name quotes a title.
_QUALIFIED_NAME = re.compile(rf"(?:{_NAME.pattern})(?:\([^()]{{1,6}}\))?")
_QUOTED_TITLE = re.compile(r"q([CFMLNY](?:[^q]{0,10}[^qxfjkt])?)q")
# "the 1979 Welsh novel": a year before a lone adjective is not part of a name.
_DATED_ADJECTIVE = re.compile(rf"(?<=t)Y(?={_WORD}[xj])")
_OPENING = re.compile(r"[q(x]*?([CFMLNY])(.?)")
_PARTICIPLE = re.compile(r"\w+(?:ed|ing)")
_YEAR = re.compile(r"(?:1[0-9]{3}|20[0-9]{2})(?:[-–/][0-9]{2,4})?")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:st|nd|rd|th|[A-Z]{0,3})")
_MARKS = {"&": "&", ":": ":", "(": "(", ")": ")", "the": "t"} | dict.fromkeys(
    ('"', "“", "”", "„", "«", "»", "``", "''"), "q"
)
# Hyphenated names and ranges of years stay whole; other joints are cut as spaCy does.
_INFIX = re.compile(
    r"""(?<=[\w)])--+(?=\w)|(?<=[^\W\d])[—–](?=[^\W\d])|(?<=[a-z])\.(?=[A-Z])|(?<=[\w)])[,:;](?=[^\W\d])
    |\.{2,}|…|(?<=\w)[()\[\]"](?=\w)""",
    re.VERBOSE,
)
_ADJECTIVE = re.compile(rf"-(?:{'|'.join(sorted(ADJECTIVE_SUFFIXES))})$")
_ANY = "xx"
"""spaCy's code of all languages."""
# "l'Inter": French, Italian and Catalan articles and prepositions before a vowel.
_ELISION = re.compile(r"(?i)\b((?:[cdjlmnst]|qu|dell|nell|dall|all|sull|un|quell|gl)['’])(?=\w)")
_CUT_ELISION = re.compile(r"(['’]) (?=\w)")
_COUNT = re.compile(r"^[0-9]\S* ")
_BYTE_ORDER_MARK = "\ufeff"
_LONE_NOUN = re.compile(r"\w[^\W\d]+(?:-\w[^\W\d]+)*(?<![A-Z])")
# "Effizienz des Prozesses" joins no name.
_NO_PARTICLES = {"de": frozenset({"des", "der", "den", "und", "zum", "zur", "zu", "bin", "da"})}
# Sentences analysed in one go: the lock is free every few milliseconds for a question that waits.
_BATCH = 64
# spaCy keeps every word it ever met; past this many we start afresh. Its own remedy, a memory zone per batch,
# clears the tokenizer's cache each time: 1,100 passages/s instead of 2,900.
_VOCABULARY_LIMIT = 500_000


class RuleLanguage:
    """All languages by rule: spaCy's tokenizers, our sentence ends, our rules for names."""

    name = "rules"

    def __init__(self, blank: Callable[[str], Any]) -> None:
        """``blank`` is ``spacy.blank``: it makes a tokenizer that belongs to this object."""
        self._blank = blank
        self._tokenizers = {code: self._build_tokenizer(code) for code in (ENGLISH, _ANY)}
        self._lock = Lock()

    def analyse_passages(self, passages: Sequence[PassageText]) -> list[list[SentenceAnalysis]]:
        """Sentences of each passage with their names and times."""
        split = [p.sentences if p.sentences is not None else split_sentences(p.text, p.language) for p in passages]
        names = self._find_names(
            [sentence for sentences in split for sentence in sentences],
            [passage.language for passage, sentences in zip(passages, split, strict=True) for _ in sentences],
            _NAME,
        )
        return group_by_passage(passages, split, names)

    def analyse_question(self, text: str, language: str | None = None) -> QuestionAnalysis:
        """Names and time constraint of a question, in about 0.06 ms; in other languages possible names too."""
        language = language or detect_language(text) or ENGLISH
        (names,) = self._find_names([text], [language], _QUALIFIED_NAME)
        constraint = time_constraint(text, language)
        return QuestionAnalysis(
            select_distinct_entities(names, NAMES_PER_QUESTION),
            constraint.text if constraint else None,
            () if language == ENGLISH else tuple(find_possible_names(text, language)),
        )

    def _find_names(
        self, texts: Sequence[str], languages: Sequence[str], pattern: re.Pattern[str]
    ) -> list[list[str]]:
        """Names in each text."""
        if all(language == ENGLISH for language in languages):
            return list(self._tokenize(texts, ENGLISH, pattern))
        names: list[list[str]] = [[] for _ in texts]
        for language in dict.fromkeys(languages):
            places = [place for place, code in enumerate(languages) if code == language]
            own = [texts[place] for place in places]
            occurrences = (
                map(find_caseless_names, own) if language in CASELESS else self._tokenize(own, language, pattern)
            )
            for place, one in zip(places, occurrences, strict=True):
                names[place] = one
        return names

    def _tokenize(self, texts: Sequence[str], language: str, pattern: re.Pattern[str]) -> Iterator[list[str]]:
        code = ENGLISH if language == ENGLISH else _ANY
        for start in range(0, len(texts), _BATCH):
            batch = [" ".join(LONG_RUN.sub(" ", text).split()) for text in texts[start : start + _BATCH]]
            if language != ENGLISH:
                batch = [_ELISION.sub(r"\1 ", text.replace(_BYTE_ORDER_MARK, "")) for text in batch]
            with self._lock:
                nlp = self._tokenizers[code]
                names = [_names(doc, pattern, language) for doc in nlp.pipe(batch)]
                if len(nlp.vocab.strings) > _VOCABULARY_LIMIT:
                    self._tokenizers[code] = self._build_tokenizer(code)
            yield from names

    def _build_tokenizer(self, code: str) -> Any:
        nlp = self._blank(code)
        nlp.max_length = sys.maxsize  # the limit guards parsers; a tokenizer has no need of it
        nlp.tokenizer.infix_finditer = _INFIX.finditer
        for abbreviation in ("No.", "Nos."):
            nlp.tokenizer.add_special_case(abbreviation, [{"ORTH": abbreviation}])
        return nlp


def _names(doc: Any, pattern: re.Pattern[str], language: str) -> list[str]:
    tokens = [token.text for token in doc]
    spans = _name_spans(tokens, pattern, language)
    surfaces = (tokens[first] if last - first == 1 else doc[first:last].text for first, last in spans)
    if language != ENGLISH:
        cut = [_CUT_ELISION.sub(r"\1", surface) for surface in surfaces]
        if language in CAPITALISES_NOUNS:  # nor is "308 Punkte" a name there
            cut = [_COUNT.sub("", surface) for surface in cut]
            return [surface for surface in cut if _LONE_NOUN.fullmatch(surface) is None]
        return cut
    return [_ADJECTIVE.sub("", surface) for surface in surfaces]


def _name_spans(tokens: Sequence[str], pattern: re.Pattern[str], language: str) -> list[tuple[int, int]]:
    """Token ranges of the names in one sentence, in order."""
    classes = "".join(
        map(_token_class, tokens)
        if language == ENGLISH
        else (_classify_foreign(token, language) for token in tokens)
    )
    opening = _OPENING.match(classes)
    if opening is not None:
        first = opening.start(1)
        # Every sentence's first word is capitalised: "The", "Released in" are no names, "Zelda" may be one.
        if opening[1] == "F" or (
            opening[2] in ("j", "k") and _PARTICIPLE.fullmatch(tokens[first])
            if language == ENGLISH
            else opening[2] not in ("C", "L") and tokens[first][1:].islower()
        ):
            classes = f"{classes[:first]}x{classes[first + 1 :]}"
    if "tY" in classes:
        classes = _DATED_ADJECTIVE.sub("x", classes)
    spans = [title.span(1) for title in _QUOTED_TITLE.finditer(classes)] if "q" in classes else []
    if spans:
        classes = _QUOTED_TITLE.sub(lambda title: "x" * len(title[0]), classes)
    for match in pattern.finditer(classes):
        # One function word, month, letter or number alone is no name; "The Who" and "J. J." are.
        if "C" in match[0] or match[0].count("F") > 1 or match[0].count("L") > 1:
            spans.append(match.span())
    return sorted(spans)


@lru_cache(maxsize=65_536)
def _token_class(token: str) -> str:
    lower = token.lower()
    if token[0].isdigit() and (token == lower or _NUMBER.fullmatch(token)):
        return "Y" if _YEAR.fullmatch(token) else "N" if _NUMBER.fullmatch(token) else "x"
    if token == lower:
        return _classify_lower_case(token)
    if lower in CALENDAR_WORDS:
        return "M"
    if lower in FUNCTION_WORDS:
        return "F"
    if "-" in token and token[0].islower():
        return "x"
    return "L" if sum(map(str.isalpha, token)) == 1 else "C"


@lru_cache(maxsize=65_536)
def _classify_foreign(word: str, language: str) -> str:
    """Class of a word in a language other than English."""
    lower = word.lower()
    if word in _MARKS and word != "the":
        return _MARKS[word]
    if word == lower:
        if word.rstrip("'’") in NAME_PARTICLES and word not in _NO_PARTICLES.get(language, ()):
            return "k"
        return "f" if word in load_function_words(language) else "N" if word.isdigit() else "x"
    if lower in load_function_words(language):
        return "F"
    return "L" if sum(map(str.isalpha, word)) == 1 else "C"


def _classify_lower_case(token: str) -> str:
    if token in _MARKS:
        return _MARKS[token]
    if token in NAME_PARTICLES:
        return "k"
    if token in FUNCTION_WORDS:
        return "j" if token in PREPOSITIONS or token in ARTICLES else "f"
    # Letters of scripts without case, amid English text, write a name.
    return "C" if token[0].isalpha() and not token[0].islower() else "x"
