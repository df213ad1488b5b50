"""Numbers that callers write as text."""

import math
import re

LONGEST_INTEGER = 100
"""Characters up to which a whole number keeps every digit."""
NUMERAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def parse_number(value: str | float | bool) -> int | float | None:
    """The number that a value is or writes; None if it is none, or not a finite one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        if not NUMERAL.fullmatch(value.strip()):
            return None
        digits = value.strip()
        value = int(digits) if len(digits) <= LONGEST_INTEGER and digits.lstrip("+-").isdecimal() else float(digits)
    if isinstance(value, int):
        return value
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() else value
