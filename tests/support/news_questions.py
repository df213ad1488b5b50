"""Ten matters that three notices of different years tell of in words of their own, and four questions on each.

No notice replaces another by title or statement, so only dates tell which one holds.
"""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Matter:
    """A matter, its notices and its questions.

    Attributes:
        notices: the year of each, its title and its text, in the order of time.
        now: two questions about now, which the last notice answers.
        then: a question about the year of the first notice, which this one answers.
        detail: a question without a time about a detail that only the first notice has.
    """

    language: str
    notices: tuple[tuple[int, str, str], ...]
    now: tuple[str, str]
    then: str
    detail: str


MATTERS = tuple(
    Matter(**one) for one in json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
)


def list_notices() -> list[dict[str, object]]:
    """A passage for each notice, dated by its metadata."""
    return [
        {
            "id": f"matter-{number}-{place}#1",
            "document": f"matter-{number}-{place}",
            "title": title,
            "text": text,
            "language": matter.language,
            "metadata": {"valid_from": f"{year}-03-01"},
        }
        for number, matter in enumerate(MATTERS)
        for place, (year, title, text) in enumerate(matter.notices)
    ]


def list_questions() -> list[tuple[str, str, str]]:
    """Kind, text and right document of each question."""
    return [
        (kind, text, f"matter-{number}-{place}")
        for number, matter in enumerate(MATTERS)
        for kind, text, place in (
            ("now", matter.now[0], 2),
            ("now", matter.now[1], 2),
            ("then", matter.then, 0),
            ("detail", matter.detail, 0),
        )
    ]
