"""Ten policies in three versions each, in English, German and French, and four questions on each policy."""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class VersionQuestion:
    """A question, and the year of the version that answers it."""

    text: str
    year: int


@dataclass(frozen=True)
class Policy:
    """A policy in the versions of three years.

    Attributes:
        template: text of a version; ``{value}`` and ``{year}`` differ.
        values: year -> what the version of this year says.
    """

    name: str
    title: str
    template: str
    values: dict[int, str]
    questions: tuple[VersionQuestion, ...]


POLICIES = tuple(
    Policy(
        **one
        | {
            "values": {int(year): value for year, value in one["values"].items()},
            "questions": [VersionQuestion(**question) for question in one["questions"]],
        }
    )
    for one in json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
)


def list_lines() -> list[dict[str, object]]:
    """A passage for each version, dated by metadata, a line, a name or a title in turn."""
    lines: list[dict[str, object]] = []
    for number, policy in enumerate(POLICIES):
        for year, value in policy.values.items():
            text = policy.template.format(value=value, year=year)
            metadata: dict[str, object] = {}
            source, title = f"{policy.name}-{value.replace(' ', '-')}.md", policy.title
            if number % 4 == 0:
                metadata["date"] = f"{year}-02-01"
            elif number % 4 == 1:
                source = f"{policy.name}-{year}.md"
            elif number % 4 == 2:
                title = f"{policy.title} {year}"
            else:
                source = f"{year}/{policy.name}.md"
            lines.append(
                {"id": f"{source}#1", "document": source, "title": title, "text": text, "metadata": metadata}
            )
    return lines


def find_source(policy: Policy, year: int) -> str:
    """The document of a policy's version."""
    value = policy.values[year]
    text = policy.template.format(value=value, year=year)
    return next(str(line["document"]) for line in list_lines() if line["text"] == text)
