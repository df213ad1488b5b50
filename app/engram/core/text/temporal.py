"""Time expressions in text and the day intervals they cover: English ones, and dates of other languages.

Rules of our own because no library fits: dateparser 1.5 ``search_dates`` took 1.8 ms a sentence on average
(p95 6.8 ms; this module 0.01 ms), reads "may", "1500 people" and "sat on the" as dates, knows no intervals, and
fills what is missing from today's date, so the same text would change its meaning overnight.

Intervals are half-open and in days: ``start`` is the first day, ``end`` the first day after. Years before our era
are recognised, so that "1200 BC" is not taken for the year 1200, but not reported: no ``datetime.date`` holds them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engram.core.text.calendar_dates import find_calendar_dates

Days = NDArray[np.float64]

# Characters between two dates of a range or a list, at most: what stands there is a word and white space.
_MOST_CHARACTERS_APART = 40
# Days apart at which two dates agree half: text dates most events by their year.
HALF_AGREEMENT = 365.0

_MONTH_STARTS = "janfebmaraprmayjunjulaugsepoctnovdec"
_CENTURY_NAMES = (  # the tenth and on; "the first century" is as likely a batsman's
    "tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth|sixteenth|seventeenth|eighteenth|nineteenth"
    "|twentieth|twenty-first"
)
# Shares of a period. They overlap, as "mid" and "late" do in speech.
_PARTS = {"early": (0.0, 0.4), "mid": (0.3, 0.7), "late": (0.6, 1.0)}

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_YEAR = r"(?:1[0-9]{3}|20[0-9]{2}|2100)"
_DAY = r"(?:3[01]|[12][0-9]|0?[1-9])(?:st|nd|rd|th)?"
_ERA = r"\s*(?:BCE?\b|B\.\s?C\.)"
_POINT = re.compile(
    rf"""(?<![\w.,:$£€#'’/+])(?=[0-9adefjlmnost])(?:
      (?P<before_era>[0-9]+(?:\s?[-–]\s?[0-9]+)?(?:(?:st|nd|rd|th)[\s-]century)?{_ERA})
    | (?P<iso>{_YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])(?![0-9-]))
    | (?P<season>{_YEAR}(?:[-–/][0-9]{{2}}|/{_YEAR}))(?![\w-])
    | (?:(?P<part>early|mid|late)[\s-]+(?:(?:of\s+)?the\s+)?)?(?:
        (?:(?P<day>{_DAY})\s+(?:of\s+)?)?(?P<month>{_MONTH})\s*(?:,\s*|of\s+)?(?P<month_year>{_YEAR})\b
      | (?P<us_month>{_MONTH})\s*(?P<us_day>{_DAY})(?:\s*,)?\s+(?P<us_year>{_YEAR})\b
      | (?P<decade>(?:1[0-9]|20)[0-9]0)\s?['’]?s\b
      | (?P<century>[0-9]{{1,2}}(?:st|nd|rd|th)|{_CENTURY_NAMES})[\s-]centur(?:y|ies)\b(?!{_ERA})
      | (?P<year>{_YEAR})(?![\w%°]|[.,:][0-9]|[-](?!present|now)[A-Za-z])
      )
    )""",
    re.IGNORECASE | re.VERBOSE,
)
# A first look that costs a tenth of the real one. Most sentences end here; what precedes it in a date is short.
_WORTH_READING = re.compile(r"[12][0-9]{3}|centur", re.IGNORECASE)

_STRONG_YEAR = re.compile(
    r"(?:^|[(\[;–—-]|,\s|\b(?:in|since|until|till|by|before|after|from|during|around|circa|c\.|ca\.|years?|born|died"
    r"|between|through|late|early|season|AD|A\.D\.))\s*$",
    re.IGNORECASE,
)
_DETERMINED_YEAR = re.compile(r"\b(?:the|an?|this|that|his|her|its|their|our)\s+$|['’]s\s+$", re.IGNORECASE)
_NO_YEAR_BEFORE = re.compile(
    r"\b(?:over|than|nearly|almost|least|most|some|approximately|roughly|exactly|only"
    r"|about|(?<!\bprior )(?<!\bup )to)\s+$|[=€£¥$]\s*$|\d\s+by\s+$",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"\b(?:pages?|pp?\.|nos?\.|numbers?|room|flight|route|highway|chapter|section|figure|table|item|lot|ports?"
    r"|codes?|errors?|lines?|rfc|iso|tickets?|issue|extension|build|size|limit|pid|id|value|zip|postcode|returns"
    r"|timeout|length|width|height)(?:\s*[:#]\s*|\s+)(?:\d+(?:\s*,\s*|\s+(?:and|or|to)\s+))*$",
    re.IGNORECASE,
)
"""A noun that is counted or numbered stands before the number, or before a list of numbers that leads to it."""
_HEDGED = re.compile(
    r"\b(?:since|until|till|from|by|before|after)\s+(?:at\s+least|about|approximately|roughly)\s+$", re.I
)
_COUNTED = re.compile(
    r"\s+(?:people|men|women|children|persons?|square|cubic|feet|ft|km|cm|mm|m|kg|lbs?|mi|mph|hp|votes?|percent"
    r"|per|million|thousand|hundred|dollars?|euros?|pounds?|bytes?|[kmgt]i?b|px|pixels?|ms|hz|[mg]hz|by\s\d+)\b"
    r"|\s?[€£¥$]",
    re.IGNORECASE,
)
_PLURAL = re.compile(r"\s+(?!was|is|has|his|its|as|this|us|does|series|news|census|across|always)[a-z]+s\b")

_BEFORE = re.compile(
    r"\b(?:(?P<limit>since|until|till|up\s+to|by|(?:starting|beginning)\s+(?:in|from))\s+(?:the\s+)?"
    r"|(?P<beyond>after|following|before|prior\s+to)\s+(?P<the>the\s+)?|(?P<affix>pre|post)[-–]"
    r"|(?P<frame>from|between)\s+(?:the\s+)?)(?:(?:year|around|about|circa|at\s+least)\s+)?$",
    re.IGNORECASE,
)
_RANGE = re.compile(r"\s*(?:to|until|till|through|up\s+to|[-–—])\s*(?:the\s+)?", re.IGNORECASE)
_AND = re.compile(r"\s+and\s+(?:the\s+)?", re.IGNORECASE)
_LIST = re.compile(r"\s*(?:,|,?\s(?:and|or))\s+", re.IGNORECASE)
_ONWARDS = re.compile(
    r"\s+onwards?\b|\s*(?:[-–—]|to|until|till)\s*(?:the\s+)?(?:present|now|today)\b", re.IGNORECASE
)


@dataclass(frozen=True)
class TimeExpression:
    """A phrase and the days it covers, ``start`` inclusive, ``end`` exclusive; ``None`` is an open end."""

    text: str
    start: date | None
    end: date | None

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for an interval without a day."""
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise ValueError(f"the interval of {self.text!r} ends before it starts")


class _Point(NamedTuple):
    """One date, month, year, decade or century, at ``first:last`` of the text."""

    first: int
    last: int
    start: date
    end: date
    plain_year: bool
    note: str = ""


def find_time_expressions(text: str, language: str | None = None) -> tuple[TimeExpression, ...]:
    """Time expressions of ``text`` in order of appearance; never raises.

    Args:
        language: ISO 639 code; see ``find_calendar_dates``. A phrase that was found reads alike without it.
    """
    hint = _WORTH_READING.search(text)
    points = _with_calendar_dates([] if hint is None else _points(text, max(0, hint.start() - 40)), text, language)
    expressions: list[TimeExpression] = []
    index = 0
    while index < len(points):
        point = points[index]
        prefix = _BEFORE.search(text, max(0, point.first - 40), point.first)
        first = prefix.start() if prefix else point.first
        index += 1
        if index < len(points) and (last := points[index]).end > point.start:
            between = text[point.last : last.first]
            framed = prefix is not None and prefix.group("frame") is not None
            if _RANGE.fullmatch(between) or (framed and _AND.fullmatch(between)):
                phrase = text[first : point.last] + point.note + between + text[last.first : last.last] + last.note
                expressions.append(TimeExpression(phrase, point.start, last.end))
                index += 1
                continue
        expressions.append(_direct_point(text, point, prefix))
    return tuple(expressions)


def time_constraint(text: str, language: str | None = None) -> TimeExpression | None:
    """The one phrase that stands for the time ``text`` speaks of: all its phrases, and the hull of their days."""
    expressions = find_time_expressions(text, language)
    if not expressions:
        return None
    starts = [expression.start for expression in expressions if expression.start is not None]
    ends = [expression.end for expression in expressions if expression.end is not None]
    return TimeExpression(
        ", ".join(dict.fromkeys(expression.text for expression in expressions)),
        min(starts) if len(starts) == len(expressions) else None,
        max(ends) if len(ends) == len(expressions) else None,
    )


def agreement(asked_times: Sequence[TimeExpression], starts: Days, ends: Days) -> Days:
    """Score how well stated intervals agree with the best of the question's intervals, (n,), in [0, 1].

    Half of it is for meeting: 1 where the intervals share a day, less the farther they lie apart. The other half is
    for a common boundary, because text tells when a state began or ended, and because meeting says little of a
    sentence that spans a life or a century. Where both name one day and the days differ, the score is lower than
    that of a month or year that holds the day: another day is another event.

    Args:
        asked_times: what a question asks about.
        starts, ends: first days and days after the last, as ``date.toordinal`` counts; NaN is an open end, and an
            interval open at both ends says nothing and agrees with nothing.
    """
    best = np.zeros(len(starts))
    for interval in asked_times:
        start = np.nan if interval.start is None else float(interval.start.toordinal())
        end = np.nan if interval.end is None else float(interval.end.toordinal())
        if interval.start is None and interval.end is None:
            continue
        apart = np.fmax(np.nan_to_num(starts - end, nan=-1.0), np.nan_to_num(start - ends, nan=-1.0))
        apart = np.maximum(apart + 1.0, 0.0)
        off = np.fmin(np.abs(starts - start), np.abs(ends - end))
        agreed = (_compute_nearness(apart) + np.nan_to_num(_compute_nearness(off))) / 2.0
        one_day = (ends - starts == 1.0) & (end - start == 1.0)
        best = np.fmax(best, np.where(one_day, agreed * (1.0 + 1.0 / (1.0 + apart)) / 2.0, agreed))
    return np.where(np.isnan(starts) & np.isnan(ends), 0.0, best)


def _compute_nearness(days: Days) -> Days:
    """1 for no days, 1/2 for ``HALF_AGREEMENT``, and on towards 0."""
    return 1.0 / (1.0 + days / HALF_AGREEMENT)


def _with_calendar_dates(points: Iterable[_Point], text: str, language: str | None) -> list[_Point]:
    """Points and calendar dates in order. Of those that overlap the first stays, and the longer of two there."""
    dates = [_Point(*found[:4], plain_year=False, note=found.note) for found in find_calendar_dates(text, language)]
    kept: list[_Point] = []
    for point in sorted((*points, *dates), key=lambda point: (point.first, -point.last)):
        if not kept or point.first >= kept[-1].last:
            kept.append(point)
    return kept


def _points(text: str, position: int) -> Iterator[_Point]:
    previous = -1
    for match in _POINT.finditer(text, position):
        if match["year"] and not _is_year(text, match, previous):
            continue
        interval = _interval(match)
        if interval is None:
            continue
        previous = match.end()
        yield _Point(*match.span(), *interval, match["year"] is not None)


def _interval(match: re.Match[str]) -> tuple[date, date] | None:
    """First day and day after the last of what ``match`` names; ``None`` for what no ``date`` can hold."""
    part = (match["part"] or "").casefold()
    if match["iso"]:
        year, month, day = match["iso"].split("-")
        return _calendar(int(year), int(month), day)
    if match["season"]:
        return _read_season(match["season"])
    if month := match["month"] or match["us_month"]:
        year = match["month_year"] or match["us_year"]
        return _calendar(int(year), month, match["day"] or match["us_day"], part)
    if match["decade"]:
        # "1800s" is a century in use, "2000s" a decade.
        decade = int(match["decade"])
        return _months(decade * 12, 1200 if decade % 100 == 0 and decade < 2000 else 120, part)
    if match["century"]:
        name = match["century"].casefold()
        number = int(name[:-2]) if name[0].isdigit() else 10 + _CENTURY_NAMES.split("|").index(name)
        return _months(((number - 1) * 100 + 1) * 12, 1200, part) if 1 <= number <= 21 else None
    return _months(int(match["year"]) * 12, 12, part) if match["year"] else None


def _read_season(text: str) -> tuple[date, date]:
    """A season ("1999-00") or years ("2001-10", "1998/2003"); what runs backwards is a month ("2024-06")."""
    first, number = int(text[:4]), int(text[-2:])
    last = first - first % 100 + number
    if last <= first and text[4] == "-" and 1 <= number <= 12:
        return _calendar(first, number)
    # "1999-00" runs into the next century; what else runs backwards is its first year.
    return _months(first * 12, 24 if (last - first) % 100 == 1 else 12 * max(1, last - first + 1))


def _calendar(year: int, month: str | int, day: str | None = None, part: str = "") -> tuple[date, date]:
    """A day, or the month where there is no day or, as in "31 April", no such day."""
    number = month if isinstance(month, int) else _MONTH_STARTS.index(month[:3].casefold()) // 3 + 1
    if day is not None:
        with suppress(ValueError):
            start = date(year, number, int(day.rstrip("stndrhSTNDRH")))
            return start, start + timedelta(days=1)
    start, end = _months(year * 12 + number - 1, 1)
    begin, finish = (round(share * (end - start).days) for share in _PARTS.get(part, (0.0, 1.0)))
    return start + timedelta(days=begin), start + timedelta(days=finish)


def _months(first: int, count: int, part: str = "") -> tuple[date, date]:
    """``count`` months from month number ``first`` (year * 12 + month - 1), or the named part of them."""
    begin, finish = _PARTS.get(part, (0.0, 1.0))
    start, end = first + int(begin * count), first + max(1, int(finish * count))
    return date(start // 12, start % 12 + 1, 1), date(end // 12, end % 12 + 1, 1)


def _is_year(text: str, match: re.Match[str], previous: int) -> bool:
    """Whether a bare number is a year, by its neighbours: "in 1998" is, "1500 people" and "page 1203" are not."""
    number = int(match["year"])
    before = text[max(0, match.start() - 30) : match.start()]
    after = text[match.end() : match.end() + 30]
    if before[-1:] in ("-", "–", "—") and before[-2:-1].isalnum():
        return match.start() - 1 == previous or before.lower().endswith(("pre-", "post-", "pre–", "post–"))
    # Of many that are no years each would read on from the last one that is.
    follows = previous > 0 and match.start() - previous <= _MOST_CHARACTERS_APART
    if match["part"] or (follows and _RANGE.fullmatch(text, previous, match.start())):
        return True
    if _COUNTED.match(after) or _NUMBERED.search(before):
        return False
    if _NO_YEAR_BEFORE.search(before) and not _HEDGED.search(before):
        return False
    is_plural, is_round = _PLURAL.match(after) is not None, number % 100 == 0
    listed = follows and _LIST.fullmatch(text, previous, match.start()) is not None
    if listed or _STRONG_YEAR.search(before) or _DETERMINED_YEAR.search(before):
        return not (is_plural and is_round)
    return number >= 1800 and not is_plural and not (is_round and before.rstrip()[-1:].isalnum())


def _direct_point(text: str, point: _Point, prefix: re.Match[str] | None) -> TimeExpression:
    """The interval of a point that is not the start of a range, as the words around it open or bound it."""
    onwards = _ONWARDS.match(text, point.last)
    if onwards is not None:
        first = prefix.start() if prefix is not None and prefix["frame"] else point.first
        phrase = text[first : point.last] + point.note + onwards.group()
        return TimeExpression(phrase, point.start, None)
    if prefix is None or prefix["frame"]:
        return TimeExpression(text[point.first : point.last] + point.note, point.start, point.end)
    phrase = text[prefix.start() : point.last] + point.note
    limit = (prefix["limit"] or prefix["beyond"] or prefix["affix"]).casefold()
    if prefix["limit"]:
        is_open = limit.startswith(("since", "start", "begin"))
        return TimeExpression(phrase, point.start, None) if is_open else TimeExpression(phrase, None, point.end)
    if prefix["the"] and point.plain_year:
        # "after the 1998 final" is still 1998.
        return TimeExpression(text[point.first : point.last] + point.note, point.start, point.end)
    if limit.startswith(("after", "following", "post")):
        return TimeExpression(phrase, point.end, None)
    return TimeExpression(phrase, None, point.start)
