"""Names of months by language, from CLDR by way of babel.

python -m tests.support.month_names      # writes app/engram/core/text/month_names.py
"""

import unicodedata
from pathlib import Path

from babel import Locale

TARGET = Path(__file__).resolve().parents[2] / "app/engram/core/text/month_names.py"
LOCALES = ("de", "es", "fr", "ru", "hi", "th", "ar", "ar_SY", "pl", "pt", "tr")
"""Those that write months as words; English has rules of its own, Chinese, Japanese and Korean number them."""


def render() -> str:
    """The module's text."""
    names: dict[str, dict[str, int]] = {"wide": {}, "abbreviated": {}}
    for code in LOCALES:
        months = Locale.parse(code).months
        for width, by_name in names.items():
            for context in ("format", "stand-alone"):
                for number, name in months[context][width].items():
                    form = unicodedata.normalize("NFC", name).casefold().strip(".")
                    if by_name.setdefault(form, number) != number:
                        raise ValueError(f"{form} is month {number} and {by_name[form]}")
    short = {name: number for name, number in names["abbreviated"].items() if name not in names["wide"]}
    return "\n".join(
        (
            '"""Names of months in lower case with their numbers, 1 to 12, of languages that write them as words.',
            "",
            "Generated from CLDR by `python -m tests.support.month_names`.",
            '"""',
            "",
            *_table("MONTHS", names["wide"]),
            *_table("SHORT_MONTHS", short),
        )
    )


def _table(name: str, numbers: dict[str, int]) -> list[str]:
    rows = [
        f'    "{form}": {number},' for form, number in sorted(numbers.items(), key=lambda one: (one[1], one[0]))
    ]
    return [f"{name} = {{", *rows, "}"] + ([""] if name == "SHORT_MONTHS" else [])


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
