"""Errors in the words of the clients that a route is for: members beside those of a problem document.

A problem document may hold members of any name (RFC 9457, section 3.2). So each client finds what it looks for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal

from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.types import Scope

from engram.api.problem_document import Problem

Dialect = Literal["plain", "openai", "rerank", "dify"]

DIFY_PATH = "/retrieval"
RERANK_PATHS = ("/v1/rerank", "/v2/rerank")
OPENAI_PREFIX = "/v1/"

BAD_HEADER = 1001
REFUSED_KEY = 1002
NO_KNOWLEDGE = 2001


class OpenAiError(BaseModel):
    """An error as OpenAI's clients read it."""

    message: str
    type: str = Field(description="The kind of problem.")
    param: str | None = None
    code: int = Field(description="The HTTP status.")


class OpenAiProblem(Problem):
    """A problem document with the member that OpenAI's clients read."""

    error: OpenAiError


class RerankProblem(Problem):
    """A problem document with the member that Cohere's clients read; Jina's read `detail`."""

    message: str


class DifyProblem(Problem):
    """A problem document with the members that Dify reads."""

    error_code: int = Field(
        description=(
            "1001: the Authorization header is missing or not `Bearer KEY`. 1002: the key may not do this. "
            "2001: there is no such knowledge. Else the HTTP status."
        )
    )
    error_msg: str


SCHEMAS: dict[Dialect, type[Problem]] = {
    "plain": Problem,
    "openai": OpenAiProblem,
    "rerank": RerankProblem,
    "dify": DifyProblem,
}


@dataclass(frozen=True, slots=True)
class DialectError:
    """An error in a dialect: its status, and the members that only this dialect has."""

    status: int
    members: Mapping[str, Any]


def find_dialect(path: str) -> Dialect:
    """The dialect that the clients of a path read."""
    if path == DIFY_PATH:
        return "dify"
    if path in RERANK_PATHS:
        return "rerank"
    return "openai" if path.startswith(OPENAI_PREFIX) else "plain"


def dialect_error(request: Scope | None, status: int, kind: str, detail: str) -> DialectError:
    """An error in the dialect of a request; plain where no request could be read.

    Args:
        request: the ASGI scope of the request that failed.
        status: HTTP status of the problem.
        kind: stable name of the kind of problem.
        detail: what is wrong, for people.
    """
    dialect = "plain" if request is None else find_dialect(request["path"])
    if dialect == "openai":
        return DialectError(status, {"error": {"message": detail, "type": kind, "param": None, "code": status}})
    if dialect == "rerank":
        return DialectError(status, {"message": detail})
    if dialect == "dify" and request is not None:
        code = _dify_code(status, Headers(scope=request))
        # Dify takes no other status for a refused key when somebody registers the service.
        status = HTTPStatus.FORBIDDEN if status == HTTPStatus.UNAUTHORIZED else status
        return DialectError(status, {"error_code": code, "error_msg": detail})
    return DialectError(status, {})


def describe(document: dict[str, Any]) -> None:
    """Name in an OpenAPI document the error schemas of each dialect's paths."""
    for path, operations in document["paths"].items():
        dialect = find_dialect(path)
        for operation in operations.values():
            responses = operation["responses"]
            if dialect == "dify":
                responses.pop(str(HTTPStatus.UNAUTHORIZED.value), None)
            for status, response in responses.items():
                if status >= "4":
                    for content in response["content"].values():
                        content["schema"] = {"$ref": f"#/components/schemas/{SCHEMAS[dialect].__name__}"}


def _dify_code(status: int, headers: Headers) -> int:
    if status == HTTPStatus.UNAUTHORIZED:
        scheme, _, key = headers.get("authorization", "").partition(" ")
        return REFUSED_KEY if scheme.lower() == "bearer" and key.strip() else BAD_HEADER
    if status == HTTPStatus.FORBIDDEN:
        return REFUSED_KEY
    return NO_KNOWLEDGE if status == HTTPStatus.NOT_FOUND else status
