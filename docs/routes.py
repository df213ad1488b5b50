"""Writes docs/routes.md from openapi/openapi.json; with --check only says whether it is up to date."""

import json
import re
from pathlib import Path
from typing import Any

import generated

TARGET = Path(__file__).with_suffix(".md")
DOCUMENT = TARGET.parents[1] / "openapi" / "openapi.json"
HEADER = """# Routes

Generated from [openapi/openapi.json](../openapi/openapi.json) by `make docs`. A running service shows every field
of each route at `/docs`.

- **Scope.** If the service requires [access keys](access.md), your key needs the scope in brackets. A route of
  `/access` without one takes any key. `GET /healthz` and `GET /readyz` need no key.
- **Collection.** Most routes take a `collection`, in the query or the body, and use `default` if you name none.
  To read a job, an answered query, a verdict or a session, to cancel a job or a session, and to run one more round
  of a session, its id is enough.
- **Errors** are problem documents (RFC 9457).
- Routes below `/api/v1`, which [oikb](import.md#any-source-by-oikb) calls, are left out.
"""
# In the order in which one meets them; what bears another tag comes after these.
ORDER = ("queries", "feedback", "passages", "sessions", "facts", "explanations", "serving", "keys", "expansions")


def document() -> str:
    """The page as it should be."""
    groups: dict[str, list[str]] = {}
    for path, operations in json.loads(DOCUMENT.read_text(encoding="utf-8"))["paths"].items():
        if path.startswith("/api/v1/"):
            continue
        for method, operation in operations.items():
            groups.setdefault(operation["tags"][0], []).append(_line(method, path, operation))
    lines = [HEADER]
    for tag in sorted(groups, key=lambda tag: (ORDER.index(tag) if tag in ORDER else len(ORDER), tag)):
        lines += [f"## {tag.capitalize()}\n", *groups[tag], ""]
    return "\n".join(lines).rstrip() + "\n"


def _line(method: str, path: str, operation: dict[str, Any]) -> str:
    scopes = [scope for way in operation.get("security", []) for needed in way.values() for scope in needed]
    scope = f" ({scopes[0]})" if scopes else ""
    return f"- `{method.upper()} {path}`{scope}: {_first_sentence(operation)}"


def _first_sentence(operation: dict[str, Any]) -> str:
    said = " ".join((operation.get("description") or operation["summary"]).split())
    return re.split(r"(?<=[.?])\s", said, maxsplit=1)[0]


if __name__ == "__main__":
    generated.write({TARGET: document()}, "`make docs`", __doc__)
