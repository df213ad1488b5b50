"""Names: when two are the same, and what is too long or too much to be any."""

import re
from collections.abc import Iterable
from functools import lru_cache

from engram.providers.language.characters import normalise_characters

MAX_NAME_CHARACTERS = 200
"""Nothing longer is a name, as written or as a key; nor would it fit an index page."""
# A run of characters without white space. spaCy takes quadratic time over it: 8 s for 10,000 characters.
LONG_RUN = re.compile(rf"(?<!\S)\S{{{MAX_NAME_CHARACTERS},}}")

_EDGE_PUNCTUATION = frozenset(" \t\"'`´“”‘’«»,.;:!?¡¿…*_~|/\\-–—")
_POSSESSIVES = ("'s", "’s", "`s", "'", "’", "`")
_ARTICLES = ("the ", "a ", "an ")
_BRACKETS = {")": "(", "]": "[", "}": "{"}
_DISAMBIGUATION = re.compile(r"^(.*\S)\s*\([^()]*\)$", re.DOTALL)


def normalise_entity(surface: str) -> str:
    """The key under which equal names meet; applying it twice changes nothing.

    NFKC, case-folded, white space collapsed; punctuation and a possessive at the edges and a leading article go.
    A name made of nothing else ("!!!", "The The") keeps its last part, so only blank text gives the empty key.
    """
    # What is too long to be a name comes once, and would fill the memory.
    return _kept_key(surface) if len(surface) <= MAX_NAME_CHARACTERS else _key(surface)


def _key(surface: str) -> str:
    key = _fold_text(surface)
    while (again := _fold_text(key)) != key:  # case-folding can undo NFKC; of what is stable every part is
        key = again
    loose = {mark for pair in _BRACKETS.items() for mark in pair if (pair[0] in key) != (pair[1] in key)}
    first, last = 0, len(key)
    while True:  # each trim can bare the next one
        start, end = _trim(key, first, last, loose)
        if start >= end or (start, end) == (first, last):
            return key[first:last]
        first, last = start, end


_kept_key = lru_cache(maxsize=16_384)(_key)


def _fold_text(text: str) -> str:
    return " ".join(normalise_characters("NFKC", text).casefold().split())


def _trim(key: str, start: int, end: int, loose: set[str]) -> tuple[int, int]:
    """Trim one layer off the edges of ``key[start:end]`` and return the new positions, without copying.

    Args:
        loose: brackets of the key whose partners are missing: "mercury (planet)" stays whole, "fbi)" does not.
    """
    while start < end and key[start] in _EDGE_PUNCTUATION:
        start += 1
    while start < end and key[end - 1] in _EDGE_PUNCTUATION:
        end -= 1
    if start < end:
        opening, closing = key[start], key[end - 1]
        if closing in loose and closing in _BRACKETS:
            while start < end and key[end - 1] == closing:
                end -= 1
        elif opening in loose and opening not in _BRACKETS:
            while start < end and key[start] == opening:
                start += 1
    end -= next((len(ending) for ending in _POSSESSIVES if key.endswith(ending, start, end)), 0)
    start += next((len(article) for article in _ARTICLES if key.startswith(article, start, end)), 0)
    while start < end and key[start] == " ":
        start += 1
    while start < end and key[end - 1] == " ":
        end -= 1
    return start, end


def select_distinct_entities(surfaces: Iterable[str], most: int) -> tuple[str, ...]:
    """The first surface form of each name, in order of appearance; the first ``most`` names."""
    by_key: dict[str, str] = {}
    for surface in surfaces:
        name = " ".join(surface.split())
        key = normalise_entity(name) if len(name) <= MAX_NAME_CHARACTERS else ""
        if key and len(key) <= MAX_NAME_CHARACTERS and len(by_key) < most:
            by_key.setdefault(key, name)
    return tuple(by_key.values())


def title_entities(title: str | None) -> tuple[str, ...]:
    """Names a title stands for: itself, and itself without a disambiguation ("Mercury (planet)", "Mercury")."""
    if not title or not title.strip():
        return ()
    match = _DISAMBIGUATION.match(title.strip())
    return (title.strip(), match.group(1)) if match else (title.strip(),)
