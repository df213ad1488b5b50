"""Numbers of a spreadsheet as its reader sees them: percentages, thousands, currencies, hours, leading zeros.

Covers what the format codes of ECMA-376 say about a number's digits and the text around them. Fractions and powers
of ten are written as plain numbers between their texts, and what has conditions or text between digits without it.
"""

import datetime
import math
import re
import unicodedata
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import lru_cache
from typing import NamedTuple

_LITERAL = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|[_*].|\[[^\]]*\]|([^"\\\[_*])')
_DIGITS = re.compile(r"[#0?][#0?,.]*|\.[#0?]+")
_AS_IT_IS = re.compile(r"General|[#0?][#0?,.]*[eE][+-][#0?]+|(?:[#0?]+ +)?[#0?]+ */ *[#0?1-9]+", re.IGNORECASE)
"""How a code shows a number that is written plainly here: as it is, as a power of ten, or as a fraction."""
_CONDITION = re.compile(r"\[[<>=]")
_ELAPSED = re.compile(r"\[(h+|m+|s+)\]", re.IGNORECASE)
_PLACES = 21
"""Digits that a number is written with; beyond them it is a power of ten."""


class _Code(NamedTuple):
    before: str
    whole_digits: int
    grouped: bool
    decimals: int
    optional: int  # decimals that are not shown if they are 0
    scale: int  # power of ten that the number is multiplied with
    after: str


def format_number(value: float, code: str) -> str:
    """Write a number by its format code; as plain digits where the code does not say how."""
    if not math.isfinite(value):
        return str(value)
    if _CONDITION.search(code):
        return plain_number(value)
    sections = _split(code)
    at = 1 if value < 0 and len(sections) > 1 else 2 if value == 0 and len(sections) > 2 else 0
    parsed = _parse(sections[at])
    if parsed is None:
        before, after = _read_texts_around(sections[at])
        number_text = plain_number(abs(value) if at == 1 else value)
        return _read_words(sections[at]) or " ".join(f"{before}{number_text}{after}".split())
    number = Decimal(repr(value)).scaleb(parsed.scale)
    rounded = number
    if abs(number) < 10**_PLACES:
        with localcontext(prec=_PLACES + 1 + parsed.decimals):
            rounded = number.quantize(Decimal(1).scaleb(-parsed.decimals), ROUND_HALF_UP)
    text = f"{abs(rounded):{',' if parsed.grouped else ''}.{parsed.decimals}f}"
    for _ in range(parsed.optional):
        text = text.removesuffix("0")
    whole, point, decimals = text.rstrip(".").partition(".")
    sign = "-" if rounded < 0 and at == 0 else ""
    whole = whole.rjust(parsed.whole_digits, "0")
    return " ".join(f"{parsed.before}{sign}{whole}{point}{decimals}{parsed.after}".split())


def plain_number(value: float) -> str:
    """Write a number with all digits that it has, of which a spreadsheet shows at most 15 after the point."""
    number = Decimal(f"{value:.15g}" if isinstance(value, float) and abs(value) < 10**15 else repr(value))
    if number and not -_PLACES < number.adjusted() < _PLACES:
        return repr(value)
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_elapsed(value: datetime.timedelta, code: str) -> str:
    """Write a time span as its format code counts it: ``30:15`` hours and not a day and six hours."""
    seconds = round(value.total_seconds())
    sign, seconds = ("-" if seconds < 0 else ""), abs(seconds)
    unit = found[1][0].lower() if (found := _ELAPSED.search(code)) else "h"
    remainder = code[found.end() :].lower() if found else ":mm:ss"
    if unit == "s":
        return f"{sign}{seconds}"
    seconds_text = f":{seconds % 60:02d}" if "s" in remainder else ""
    if unit == "m":
        return f"{sign}{seconds // 60}{seconds_text}"
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02d}{seconds_text}"


@lru_cache(maxsize=1_000)
def _split(code: str) -> list[str]:
    """The sections of a code: for positive numbers, negative ones, zero and text."""
    return re.split(r';(?=(?:[^"]*"[^"]*")*[^"]*$)', code)


@lru_cache(maxsize=1_000)
def _read_words(section: str) -> str:
    """Return the text that a section shows in place of any number, as ``"yes"`` or a tick; empty for none."""
    pieces = list(_LITERAL.finditer(section))
    text = "".join(piece[1] or piece[2] or piece[3] or "" for piece in pieces).strip()
    is_shown = any(one.isalpha() or unicodedata.category(one) == "So" for one in text)
    return text if is_shown and not any((piece[4] or "").strip() for piece in pieces) else ""


@lru_cache(maxsize=1_000)
def _read_texts_around(section: str) -> tuple[str, str]:
    """Return the texts that a section shows before and after a number that is written as it is."""
    code, shown = _part_literals(section)
    number = _AS_IT_IS.search(code)
    if number is None or "%" in code or re.search(r"[#0?]", code[number.end() :]):
        return "", ""
    return shown[: number.start()], shown[number.end() :]


def _part_literals(section: str) -> tuple[str, str]:
    """The code without its literal text, and with it at the same places."""
    plain, literal = [], []
    for match in _LITERAL.finditer(section):
        text = match[1] or match[2] or match[3] or ""
        plain.append(match[4] or "\0" * len(text))
        literal.append(match[4] or text)
    return "".join(plain), "".join(literal)


@lru_cache(maxsize=1_000)
def _parse(section: str) -> _Code | None:
    """Parse how a section writes a number; None where it has no digits, or a form that is not covered."""
    code, shown = _part_literals(section)
    digits = _DIGITS.search(code)
    if digits is None or not re.search(r"[#0]", digits[0]) or re.search(r"[eE][+-]|/|General|@", code):
        return None
    if re.search(r"[#0?]", code[digits.end() :]):
        return None
    body = digits[0]
    whole, _, decimals = body.partition(".")
    scale = 2 * code.count("%") - 3 * (len(body) - len(body.rstrip(",")))
    return _Code(
        before=shown[: digits.start()],
        whole_digits=whole.count("0"),
        grouped="," in whole.rstrip(","),
        decimals=sum(map(decimals.count, "0#?")),
        optional=sum(map(decimals.count, "#?")),
        scale=scale,
        after=shown[digits.end() :],
    )
