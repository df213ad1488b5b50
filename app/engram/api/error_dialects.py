"""Errors in the words of the clients that a route is for: members beside those of a problem document.

A problem document may hold members of any name (RFC 9457, section 3.2). So each client finds what it looks for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Scope

from engram.api.problem_document import Problem
from engram.composition.wings import Dialect


@dataclass(frozen=True, slots=True)
class DialectError:
    """An error in a dialect: its status, and the members that only this dialect has."""

    status: int
    members: Mapping[str, Any] = field(default_factory=dict)


def find_dialect(dialects: Sequence[Dialect], path: str) -> Dialect | None:
    """The dialect that the clients of a path read; None where they read problem documents."""
    return next((dialect for dialect in dialects if dialect.reads(path)), None)


def dialect_error(request: Scope | None, status: int, kind: str, detail: str) -> DialectError:
    """An error in the dialect of a request; plain where no request could be read.

    Args:
        request: the ASGI scope of the request that failed.
        status: HTTP status of the problem.
        kind: stable name of the kind of problem.
        detail: what is wrong, for people.
    """
    if request is None:
        return DialectError(status)
    dialect = find_dialect(_list_dialects(request), request["path"])
    if dialect is None:
        return DialectError(status)
    members = dialect.build_members(request, status, kind, detail)
    return DialectError(dialect.statuses.get(status, status), members)


def _list_dialects(request: Scope) -> Sequence[Dialect]:
    """List the dialects of the application that the request is for; one without wings has none."""
    app = request.get("app")
    dialects: Sequence[Dialect] = () if app is None else getattr(app.state, "dialects", ())
    return dialects


def describe(document: dict[str, Any], dialects: Sequence[Dialect]) -> None:
    """Name in an OpenAPI document the error schemas of each dialect's paths."""
    for path, operations in document["paths"].items():
        dialect = find_dialect(dialects, path)
        problem = Problem if dialect is None else dialect.problem
        for operation in operations.values():
            responses = operation["responses"]
            for status in () if dialect is None else dialect.statuses:
                responses.pop(str(int(status)), None)
            for status, response in responses.items():
                if status >= "4":
                    for content in response["content"].values():
                        content["schema"] = {"$ref": f"#/components/schemas/{problem.__name__}"}
