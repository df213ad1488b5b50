"""What stands in brackets after a name: when and where somebody was born and died, and other names."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.core.temporal import TimeExpression, find_time_expressions
from app.core.triples import Triple
from app.providers.language.facts.clauses import Topic
from app.providers.language.facts.reading import Item, Names, read

_ALIAS = re.compile(
    r"(?:also|better|formerly|commonly|sometimes)?\s*(?:known|credited|romani[sz]ed|spelled|written|referred to)\s+(?:simply\s+)?as"
    r"|a\.\s?k\.\s?a\.?|aka|n[ée]e|alias|stage name|lit(?:erally|\.)|[A-Z]\w+\s*:\s*(?=[^0-9])",
)
_BORN = re.compile(r"\b(?:born|b\.)|\*(?=\s*[0-9])", re.IGNORECASE)
_DIED = re.compile(r"\b(?:died|d\.)|†", re.IGNORECASE)
_SPAN = re.compile(r"(?<=[\w.?,)])\s*[–—-]\s*(?=\w)")
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


def without_brackets(items: Sequence[Item], text: str) -> tuple[list[Item], list[Bracket]]:
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


def facts_in(bracket: Bracket, topic: Topic, names: Names, ordinal: int, *, own: bool) -> Iterator[Triple]:
    """What the bracket says of the name before it, or of the topic if it is the topic's ``own``."""
    subject = topic.name if own else bracket.name
    if subject is None:
        return
    text = _LOST_DASH.sub(r"\1 – ", bracket.text.strip())
    is_person = topic.kind == "person" or _BORN.search(text) is not None if own else None
    for part in text.split(";"):
        yield from _life(subject, part, names, ordinal, is_person=is_person)
    if own:
        yield from _aliases(subject, text, ordinal)


def _life(subject: str, text: str, names: Names, ordinal: int, *, is_person: bool | None) -> Iterator[Triple]:
    if _DATE_INSIDE.search(text) is None or _FLOURISHED.match(text.strip()):
        return
    born, died = _BORN.search(text), _DIED.search(text)
    halves: list[tuple[str, str]] = []
    if born or died:
        if born:
            halves.append(
                ("birth", text[born.end() : died.start() if died and died.start() > born.end() else None])
            )
        if died:
            halves.append(("death", text[died.end() :]))
    else:
        split = next(
            (m for m in _SPAN.finditer(text) if _dated(text[: m.start()]) and _dated(text[m.end() :])), None
        )
        if split is None:
            if is_person is None and (only := _only_year(text)) is not None:
                yield Triple(subject, "date", only, ordinal, "date", None, None, 0.8)
            return
        halves = [("birth", text[: split.start()]), ("death", text[split.end() :])]
        if is_person is None and not _is_lifetime(halves[0][1], halves[1][1]):
            return
    for event, half in halves:
        named = f"date of {event}"
        if is_person is False:
            named = "began" if event == "birth" else "ended"
        date = _first_date(half)
        if date is not None:
            yield Triple(subject, named, date, ordinal, "date", None, None, 0.95)
        if is_person is not False:
            for place in _places(read(half, names)):
                yield Triple(subject, f"place of {event}", place, ordinal, "entity", None, None, 0.85)


def _places(items: Sequence[Item]) -> list[str]:
    """Names after "in" or after the date, or right before it: others say what somebody was called."""
    first = next((place for place, item in enumerate(items) if item.kind in "Dp#"), len(items))
    if [item.kind for item in items[:3]] == ["N", ",", "D"]:
        first = 0
    return [item.text for item in items[first:] if item.kind == "N"][:3]


def _dated(text: str) -> bool:
    return _first_date(text) is not None


def _first_date(text: str) -> str | None:
    """The first date in a short text where a lone year counts, whatever stands around it."""
    found: tuple[TimeExpression, ...] = find_time_expressions(text.strip())
    if found:
        return found[0].text
    year = re.search(r"(?<![\w,])[0-9]{3,4}(?![\w,])", text)
    return year[0] if year is not None else None


def _is_lifetime(first: str, last: str) -> bool:
    """Whether the years are as far apart as birth and death; a reign or a stay is shorter."""
    years = [_YEARS.findall(text) for text in (first, last)]
    return bool(years[0] and years[1]) and LIFETIME[0] <= int(years[1][-1]) - int(years[0][-1]) <= LIFETIME[1]


def _only_year(text: str) -> str | None:
    return text.strip() if re.fullmatch(r"\s*(?:1[0-9]{3}|20[0-9]{2})\s*", text) else None


def _aliases(subject: str, text: str, ordinal: int) -> Iterator[Triple]:
    """Other names: what follows "also known as" or the name of a language."""
    for part in re.split(r"[;]|,(?=\s*(?:also|better|literally|lit\.))", text):
        match = _ALIAS.search(part)
        if match is None:
            continue
        for name in re.split(r",|\band\b|\bor\b", part[match.end() :]):
            written = name.strip(" \t\"'“”‘’:.")
            if written and len(written) <= 80 and not written[0].isdigit() and written != subject:
                yield Triple(subject, "also known as", written, ordinal, "text", None, None, 0.85)
