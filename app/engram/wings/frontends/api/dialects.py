"""Errors in the words of the clients that the wing's routes are for."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.types import Scope

from engram.api.problem_document import Problem
from engram.composition.wings import Dialect

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


def _build_openai_members(_request: Scope, status: int, kind: str, detail: str) -> Mapping[str, Any]:
    return {"error": {"message": detail, "type": kind, "param": None, "code": status}}


def _build_rerank_members(_request: Scope, _status: int, _kind: str, detail: str) -> Mapping[str, Any]:
    return {"message": detail}


def _build_dify_members(request: Scope, status: int, _kind: str, detail: str) -> Mapping[str, Any]:
    return {"error_code": _choose_dify_code(status, Headers(scope=request)), "error_msg": detail}


def _choose_dify_code(status: int, headers: Headers) -> int:
    if status == HTTPStatus.UNAUTHORIZED:
        scheme, _, key = headers.get("authorization", "").partition(" ")
        return REFUSED_KEY if scheme.lower() == "bearer" and key.strip() else BAD_HEADER
    if status == HTTPStatus.FORBIDDEN:
        return REFUSED_KEY
    return NO_KNOWLEDGE if status == HTTPStatus.NOT_FOUND else status


DIALECTS = (
    Dialect(
        reads=lambda path: path == DIFY_PATH,
        problem=DifyProblem,
        build_members=_build_dify_members,
        # Dify takes no other status for a refused key when somebody registers the service.
        statuses={HTTPStatus.UNAUTHORIZED: HTTPStatus.FORBIDDEN},
    ),
    Dialect(reads=lambda path: path in RERANK_PATHS, problem=RerankProblem, build_members=_build_rerank_members),
    Dialect(
        reads=lambda path: path.startswith(OPENAI_PREFIX) and path not in RERANK_PATHS,
        problem=OpenAiProblem,
        build_members=_build_openai_members,
    ),
)
