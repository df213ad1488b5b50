"""Dates as languages other than English write them, and numeric dates of any.

- Months by name: "12. Juni 2024", "12 de junio de 2024", "12 июня 2024 г.", "12 มิถุนายน พ.ศ. 2567".
- Chinese, Japanese and Korean dates with their eras: "2024年6月12日", "令和6年", "平成八年", "民國113年",
  "二〇二四年", "2024년 6월".
- Numeric dates: "12.6.2024", "12/6/2024", "2024/6/12". Which number is the month of "3/4/2024" depends on the
  language: it comes first in English, last elsewhere. Text that names such a date may tell the day in brackets,
  "3/4/2024 [2024-04-03]", which then counts.
"""

import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta
from typing import NamedTuple

from engram.core.text.month_names import MONTHS, SHORT_MONTHS

ENGLISH = "en"
_ERAS = {"明治": 1868, "大正": 1912, "昭和": 1926, "平成": 1989, "令和": 2019, "民國": 1912, "民国": 1912}
"""First years of Japanese eras and of the Republic of China."""
_BUDDHIST_YEARS = 543
"""By which Thai years are ahead."""
_FIRST_YEAR, _LAST_YEAR = 1000, 2100
_HAN_DIGITS = {letter: number for number, letter in enumerate("〇一二三四五六七八九")} | {"零": 0}
_HAN = "".join(_HAN_DIGITS)
_HAN_NUMBER = f"(?:[{_HAN}]?十[{_HAN}]?|[{_HAN}]{{1,3}})"
"""Up to 99 with 十, or digit by digit: 三十一, 三一."""

_NUMERIC = re.compile(
    r"(?<![\w.,:/-])(?:(?P<day>\d{1,2})(?P<mark>[./-])(?P<month>\d{1,2})(?P=mark)(?P<year>\d{4})"
    r"|(?P<first_year>\d{4})(?P<year_mark>[./])(?P<middle>\d{1,2})(?P=year_mark)(?P<last>\d{1,2}))"
    r"(?![\w/-]|[.,]\d)(?:\s?\[(?P<iso>\d{4}-\d\d-\d\d)\])?"
)
_LETTERS = r"(?!del?\s)[^\W\d_][^\s\d.,;:()\[\]/–—]*"
_NAMED = re.compile(
    rf"(?:(?<!\w)(?P<day>\d{{1,2}})(?:\.|º|er|ª)?\s*(?:de\s+)?)?(?<!\w)(?P<month>{_LETTERS}(?:\s{_LETTERS})?)\.?,?"
    r"\s*(?:del?\s+)?(?P<buddhist>พ\.ศ\.\s*)?(?P<year>\d{4})(?!\d)(?:\s*г(?:\.|ода|оду)?(?!\w))?"
)
_EAST = re.compile(
    rf"(?<!\d)(?:(?P<era>{'|'.join(_ERAS)})(?P<era_year>\d{{1,3}}|元|{_HAN_NUMBER})|(?P<year>\d{{4}}|[{_HAN}]{{4}}))\s?[年년](?![間间前동간])"
    rf"(?:\s?(?P<month>\d{{1,2}}|{_HAN_NUMBER})\s?[月월](?:\s?(?P<day>\d{{1,2}}|{_HAN_NUMBER})\s?[日號号일])?)?"
)
_STATED_YEAR = re.compile(
    r"(?<!\w)(?:(?:im\s+jahre?|seit|anno|en\s+l[’']an|depuis|vers|en\s+el\s+año|desde|no\s+ano|em|в|с|до|после|около|w|od|po"
    r"|roku|yıl|سنة|عام|في|سنه|वर्ष|सन्?|ปี(?:\s*ค\.ศ\.)?)\s+(?P<after>\d{4})(?![\w.,:%°/-]*\d)"
    r"|(?P<before>\d{4})\s*(?:году|года|год|г\.|roku|yılı\w*|[’'](?:de|da|te|ta|den|dan|ten|tan)|में|ई\.)(?!\w))",
    re.IGNORECASE,
)
_MARKS = re.compile(r"\d\d|[元〇一二三四五六七八九十][年년]")


class CalendarDate(NamedTuple):
    """Days ``start`` to before ``end``, as the text says at ``first:last``.

    ``note`` is what tells the day of a numeric date that can be read in two ways, or empty.
    """

    first: int
    last: int
    start: date
    end: date
    note: str = ""


def find_calendar_dates(text: str, language: str | None) -> Iterator[CalendarDate]:
    """Dates of ``text``, not in order, those of one spelling after those of another.

    Args:
        language: ISO 639 code of the text, which decides how ambiguous dates are read, and whether months of other
            languages are looked for: none are in English. None: they are, and days come first.
    """
    if not _MARKS.search(text):
        return
    for match in _NUMERIC.finditer(text):
        if found := _read_numeric(match, language):
            yield found
    for match in _EAST.finditer(text):
        if found := _read_east(match):
            yield found
    if language == ENGLISH:
        return
    for match in _NAMED.finditer(text):
        if found := _read_named(match):
            yield found
    for match in _STATED_YEAR.finditer(text):
        group = "after" if match["after"] else "before"
        if span := _cover(int(match[group]), None, None):
            yield CalendarDate(*match.span(group), *span)


def _read_numeric(match: re.Match[str], language: str | None) -> CalendarDate | None:
    if match["iso"]:
        with suppress(ValueError):
            stated = date.fromisoformat(match["iso"])
            return CalendarDate(*match.span(), stated, stated + timedelta(days=1))
        return None
    if match["first_year"]:
        span = _cover(int(match["first_year"]), int(match["middle"]), int(match["last"]), exact=True)
        return CalendarDate(*match.span(), *span) if span else None
    year, first, second = (int(match[part]) for part in ("year", "day", "month"))
    month_first = language == ENGLISH and match["mark"] != "."
    orders = ((first, second), (second, first)) if month_first else ((second, first), (first, second))
    spans = [span for month, day in orders if (span := _cover(year, month, day, exact=True))]
    if not spans:
        return None
    ambiguous = len(spans) == 2 and first != second and match["mark"] != "."
    return CalendarDate(*match.span(), *spans[0], f" [{spans[0][0].isoformat()}]" if ambiguous else "")


def _read_east(match: re.Match[str]) -> CalendarDate | None:
    if match["era"]:
        number = 1 if match["era_year"] == "元" else _read_number(match["era_year"])
        year = _ERAS[match["era"]] + number - 1
    else:
        year = _read_number(match["year"])
    month, day = (_read_number(match[part]) if match[part] else None for part in ("month", "day"))
    span = _cover(year, month, day)
    return CalendarDate(*match.span(), *span) if span else None


def _read_named(match: re.Match[str]) -> CalendarDate | None:
    words = unicodedata.normalize("NFC", match["month"]).casefold().replace("i̇", "i").split()
    year = int(match["year"])
    if match["buddhist"] or (year > _LAST_YEAR and any("ก" <= letter <= "๛" for letter in match["month"])):
        year -= _BUDDHIST_YEARS
    # The last word is the month's name, or the last two: "في يونيو 2003", "كانون الثاني 2003".
    for start in range(len(words)):
        name = " ".join(words[start:])
        month = MONTHS.get(name) or (SHORT_MONTHS.get(name) if match["day"] else None)
        if month is None:
            continue
        day = int(match["day"]) if match["day"] and start == 0 else None
        first = (
            match.start()
            if start == 0
            else match.start("month") + match["month"].rindex(match["month"].split()[start])
        )
        span = _cover(year, month, day)
        return CalendarDate(first, match.end(), *span) if span else None
    return None


def _read_number(digits: str) -> int:
    """A number in any digits, or in Han ones: 二〇二四, 十二, 三十一."""
    if digits.isdecimal():
        return int(digits)
    if "十" not in digits:
        return int("".join(str(_HAN_DIGITS[letter]) for letter in digits))
    tens, _, ones = digits.partition("十")
    return 10 * (_HAN_DIGITS[tens] if tens else 1) + (_HAN_DIGITS[ones] if ones else 0)


def _cover(year: int, month: int | None, day: int | None, *, exact: bool = False) -> tuple[date, date] | None:
    """First day and day after the last of a year, month or day; a day that no month has is its month, or None.

    Args:
        exact: give None for a day that the month does not have.
    """
    if not _FIRST_YEAR <= year <= _LAST_YEAR or (month is not None and not 1 <= month <= 12):
        return None
    if month is None:
        return date(year, 1, 1), date(year + 1, 1, 1)
    if day is not None:
        with suppress(ValueError):
            start = date(year, month, day)
            return start, start + timedelta(days=1)
        if exact:
            return None
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)
