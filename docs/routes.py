"""Writes docs/routes.md from openapi/openapi.json; with --check only says whether it is up to date."""

import json
import re
from pathlib import Path
from typing import Any

import generated

TARGET = Path(__file__).with_suffix(".md")
DOCUMENT = TARGET.parents[1] / "openapi" / "openapi.json"
HEADER = """# Routes

Generated from [openapi/openapi.json](../openapi/openapi.json) by `make docs`. A running service has the whole
of it, with every field, at `/docs`. Errors are RFC 9457 problem documents. Where keys are needed, one must
have the scope named ([access.md](access.md)). A job, an answered query, a session and a verdict are read by
their id alone, without a collection, and so is a session gone on with and cancelled.
"""
# In the order in which one meets them; what bears another tag comes after these.
ORDER = ("queries", "feedback", "passages", "sessions", "facts", "explanations", "serving", "keys", "expansions")


def document() -> str:
    """The page as it should be."""
    groups: dict[str, list[str]] = {}
    for path, operations in json.loads(DOCUMENT.read_text(encoding="utf-8"))["paths"].items():
        for method, operation in operations.items():
            groups.setdefault(operation["tags"][0], []).append(_line(method, path, operation))
    lines = [HEADER]
    for tag in sorted(groups, key=lambda tag: (ORDER.index(tag) if tag in ORDER else len(ORDER), tag)):
        lines += [f"## {tag.capitalize()}\n", "| route | scope | |", "|---|---|---|", *groups[tag], ""]
    return "\n".join(lines).rstrip() + "\n"


def _line(method: str, path: str, operation: dict[str, Any]) -> str:
    scopes = [scope for way in operation.get("security", []) for needed in way.values() for scope in needed]
    return f"| `{method.upper()} {path}` | {scopes[0] if scopes else ''} | {_first_sentence(operation)} |"


def _first_sentence(operation: dict[str, Any]) -> str:
    said = " ".join((operation.get("description") or operation["summary"]).split())
    return re.split(r"(?<=[.?])\s", said, maxsplit=1)[0].replace("|", "\\|")


if __name__ == "__main__":
    generated.write({TARGET: document()}, "`make docs`", __doc__)
