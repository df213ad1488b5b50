"""What retrieval needs from a language: sentences, the names in them, and the time they speak of."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from app.core.temporal import time_constraint

_POSSESSIVE = re.compile(r"['’`](?:s|S)?$")
_EDGE_PUNCTUATION = " \t\"'`´“”‘’«»,.;:!?¡¿…*_~|/\\-–—"
_ARTICLES = ("the ", "a ", "an ")
_BRACKETS = {")": "(", "]": "[", "}": "{"}
_DISAMBIGUATION = re.compile(r"^(.*\S)\s*\([^()]*\)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PassageText:
    """A passage to analyse; given ``sentences`` are kept as they are, ``None`` asks for a split of ``text``."""

    title: str | None
    text: str
    sentences: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class SentenceAnalysis:
    """One sentence, the names in it (surface forms, in order, no name twice) and the time it speaks of."""

    text: str
    entities: tuple[str, ...]
    time_expression: str | None


@dataclass(frozen=True, slots=True)
class QuestionAnalysis:
    """The names in a question and its time constraint; a question may well have neither."""

    entities: tuple[str, ...]
    time_expression: str | None


class Language(Protocol):
    """Analyses text. All methods may be called from several threads at once."""

    @property
    def name(self) -> str:
        """What was loaded, such as ``rules`` or ``en_core_web_sm 3.8.0``."""

    def analyse_passages(self, passages: Sequence[PassageText]) -> list[list[SentenceAnalysis]]:
        """Sentences of each passage, in order. The title is a name in every sentence of its passage."""

    def analyse_question(self, text: str) -> QuestionAnalysis:
        """Names and time constraint of a question."""


@lru_cache(maxsize=16_384)
def normalise_entity(surface: str) -> str:
    """The key under which equal names meet; applying it twice changes nothing.

    NFKC, case-folded, white space collapsed; punctuation and a possessive at the edges and a leading article go.
    A name made of nothing else ("!!!", "The The") keeps its last part, so only blank text gives the empty key.
    """
    key = " ".join(unicodedata.normalize("NFKC", surface).casefold().split())
    # Case-folding can undo NFKC and each trim can bare the next one: repeat until nothing changes.
    while (trimmed := _trim(key)) != key:
        key = trimmed
    return key


def _trim(key: str) -> str:
    trimmed = _strip_unbalanced(key.strip(_EDGE_PUNCTUATION))
    trimmed = _POSSESSIVE.sub("", trimmed)
    for article in _ARTICLES:
        if trimmed.startswith(article):
            trimmed = trimmed[len(article) :]
            break
    return " ".join(unicodedata.normalize("NFKC", trimmed).casefold().split()) or key


def _strip_unbalanced(key: str) -> str:
    """Drop a bracket at an edge whose partner is missing: "mercury (planet)" stays, "fbi)" does not."""
    if key and key[-1] in _BRACKETS and _BRACKETS[key[-1]] not in key:
        return key.rstrip(key[-1])
    if key and key[0] in _BRACKETS.values() and not any(c in key for c, o in _BRACKETS.items() if o == key[0]):
        return key.lstrip(key[0])
    return key


def distinct_entities(surfaces: Iterable[str]) -> tuple[str, ...]:
    """The first surface form of each name, in order of appearance."""
    by_key: dict[str, str] = {}
    for surface in surfaces:
        if key := normalise_entity(surface):
            by_key.setdefault(key, " ".join(surface.split()))
    return tuple(by_key.values())


def title_entities(title: str | None) -> tuple[str, ...]:
    """Names a title stands for: itself, and itself without a disambiguation ("Mercury (planet)", "Mercury")."""
    if not title or not title.strip():
        return ()
    match = _DISAMBIGUATION.match(title.strip())
    return (title.strip(), match.group(1)) if match else (title.strip(),)


def passages_of(
    passages: Sequence[PassageText], split: Iterable[Sequence[str]], names: Iterable[Sequence[str]]
) -> list[list[SentenceAnalysis]]:
    """Put together what was found: ``names`` has one entry per sentence, over all passages in order."""
    remaining = iter(names)
    analyses: list[list[SentenceAnalysis]] = []
    for passage, sentences in zip(passages, split, strict=True):
        titles = title_entities(passage.title)
        analyses.append([])
        for sentence in sentences:
            constraint = time_constraint(sentence)
            entities = distinct_entities((*titles, *next(remaining)))
            analyses[-1].append(SentenceAnalysis(sentence, entities, constraint.text if constraint else None))
    return analyses
