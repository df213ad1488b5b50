"""Text in brackets behind a name: dates and places of a life, and other names."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from engram.core.text.temporal import TimeExpression, find_time_expressions
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.reading.sentence_items import Item, Names, read
from engram.wings.facts.reading.stated_facts import Topic

_ALIAS = re.compile(
    r"(?:known|credited|romani[sz]ed|spelled|written|referred to)\s+(?:simply\s+)?as"
    r"|a\.\s?k\.\s?a\.?|aka|n[ée]e|alias|stage name|lit(?:erally|\.)|[A-Z]\w+\s*:\s*(?=[^0-9])",
)
_BORN = re.compile(r"\b(?:born|b\.)|\*(?=\s*[0-9])", re.IGNORECASE)
_DIED = re.compile(r"\b(?:died|d\.)|†", re.IGNORECASE)
_SPAN = re.compile(r"(?<=[\w.?,)])\s*[–—-]\s*(?=\w)")
_NO_ALIAS = re.compile(r"[0-9]|\b(?:born|died)\b")
_DATE_INSIDE = re.compile(r"[0-9]{3,4}")
_FLOURISHED = re.compile(r"\b(?:fl|floruit|reigned|r)\b\.?", re.IGNORECASE)
# Between two dates whose dash was lost: "1894 March 23, 1970", "188225 May 1974", "1916May 5".
_LOST_DASH = re.compile(
    r"(?<![0-9])([12][0-9]{3})\s*(?=[0-9]{1,2}\s[A-Z][a-z]+\s[0-9]{4}|[A-Z][a-z]+\s[0-9]{1,2},\s[0-9]{4})"
)
_YEARS = re.compile(r"[0-9]{3,4}")
LIFETIME = (25, 105)
"""Years that somebody named in passing has lived for, where brackets give just two dates."""
MAX_CHARACTERS = 300
"""Longer brackets are asides."""


@dataclass(frozen=True, slots=True)
class Bracket:
    """Text between brackets, the name that stands before it, and where it opens."""

    text: str
    name: str | None
    start: int


def split_brackets(items: Sequence[Item], text: str) -> tuple[list[Item], list[Bracket]]:
    """The items outside of brackets, and what is within the outermost ones."""
    outside: list[Item] = []
    brackets: list[Bracket] = []
    depth, opened = 0, 0
    for item in items:
        if item.kind == "(":
            if depth == 0:
                opened = item.end
            depth += 1
        elif item.kind == ")":
            if depth == 1 and item.start - opened <= MAX_CHARACTERS:
                name = outside[-1].text if outside and outside[-1].kind == "N" else None
                brackets.append(Bracket(text[opened : item.start], name, opened))
            depth = max(0, depth - 1)
        elif depth == 0:
            outside.append(item)
    return outside, brackets


def read_bracket_facts(
    bracket: Bracket, topic: Topic, names: Names, ordinal: int, *, own: bool
) -> Iterator[Triple]:
    """Yield the facts of a bracket about the name before it, or about the topic if it is the topic's ``own``."""
    subject = topic.name if own else bracket.name
    if subject is None:
        return
    text = _LOST_DASH.sub(r"\1 – ", bracket.text.strip())
    is_person = topic.kind == "person" or _BORN.search(text) is not None if own else None
    yield from _life(subject, text, names, ordinal, is_person=is_person)
    if own:
        yield from _aliases(subject, text, ordinal)


def _life(subject: str, text: str, names: Names, ordinal: int, *, is_person: bool | None) -> Iterator[Triple]:
    """Read birth and death of a person, or beginning and end of something else.

    Args:
        is_person: whether the subject is a person; None if unknown, as for a name in passing.
    """
    if _DATE_INSIDE.search(text) is None or _FLOURISHED.match(text.strip()):
        return
    halves = _halves(text)
    if is_person is None and not any(word.search(text) for word in (_BORN, _DIED)):
        if len(halves) < 2 and (year := _read_lone_year(text)) is not None:
            yield Triple(subject, "date", year, ordinal, "date", None, None, 0.8)
        if len(halves) < 2 or not _is_lifetime(*halves.values()):
            return
    for event, half in halves.items():
        named = f"date of {event}" if is_person is not False else {"birth": "began"}.get(event, "ended")
        date = _find_first_date(half)
        if date is not None:
            yield Triple(subject, named, date, ordinal, "date", None, None, 0.95)
        places = _places(read(half, names)) if is_person is not False else []
        if places:
            yield Triple(subject, f"place of {event}", places[0], ordinal, "entity", None, None, 0.85)
        for inner, outer in pairwise(places):
            yield Triple(inner, "located in", outer, ordinal, "entity", None, None, 0.8)


def _halves(text: str) -> dict[str, str]:
    """Return the texts under "birth" and "death"; none if neither is told.

    They stand behind "born" and "died", or around a dash between two dates.
    """
    born, died = _BORN.search(text), _DIED.search(text)
    if born or died:
        halves = {}
        if born:
            end = died.start() if died and died.start() > born.end() else None
            halves["birth"] = text[born.end() : end]
        if died:
            halves["death"] = text[died.end() :]
        return halves
    for split in _SPAN.finditer(text):
        halves = {"birth": text[: split.start()], "death": text[split.end() :]}
        if all(_find_first_date(half) is not None for half in halves.values()):
            return halves
    return {}


def _places(items: Sequence[Item]) -> list[str]:
    """Names after "in" or after the date, or right before it: others say what somebody was called."""
    first = next((place for place, item in enumerate(items) if item.kind in "Dp#"), len(items))
    if [item.kind for item in items[:3]] == ["N", ",", "D"]:
        first = 0
    return [item.text for item in items[first:] if item.kind == "N"][:3]


def _find_first_date(text: str) -> str | None:
    """The first date in a short text where a lone year counts, whatever stands around it."""
    expressions: tuple[TimeExpression, ...] = find_time_expressions(text.strip(), "en")
    if expressions:
        return expressions[0].text
    year = re.search(r"(?<![\w,])[0-9]{3,4}(?![\w,])", text)
    return year[0] if year is not None else None


def _is_lifetime(first: str, last: str) -> bool:
    """Whether the years are as far apart as birth and death; a reign or a stay is shorter."""
    years = [_YEARS.findall(text) for text in (first, last)]
    return bool(years[0] and years[1]) and LIFETIME[0] <= int(years[1][-1]) - int(years[0][-1]) <= LIFETIME[1]


def _read_lone_year(text: str) -> str | None:
    return text.strip() if re.fullmatch(r"\s*(?:1[0-9]{3}|20[0-9]{2})\s*", text) else None


def _aliases(subject: str, text: str, ordinal: int) -> Iterator[Triple]:
    """Other names: what follows "also known as" or the name of a language."""
    for part in re.split(r"[;]|,(?=\s*(?:also|better|literally|lit\.))", text):
        match = _ALIAS.search(part)
        if match is None:
            continue
        for name in re.split(r",|\band\b|\bor\b", part[match.end() :]):
            written = name.strip(" \t\"'“”‘’:.")
            if written and len(written) <= 80 and written != subject and not _NO_ALIAS.search(written):
                yield Triple(subject, "also known as", written, ordinal, "text", None, None, 0.85)
