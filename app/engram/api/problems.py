"""Every error as one RFC 9457 problem document, whatever raised it."""

import http
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from engram.api import error_dialects
from engram.context.errors import (
    ConflictError,
    EmbeddingSpaceMismatchError,
    EngramError,
    ForbiddenError,
    InvalidRequestError,
    LlmError,
    MalformedRequestError,
    NotFoundError,
    NotInstalledError,
    PayloadTooLargeError,
    TooManyRequestsError,
    UnauthorizedError,
    UnavailableError,
    UnsupportedMediaTypeError,
)
from engram.telemetry.request_id import get_current_id

log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:engram:problem:"
RETRY_AFTER_SECONDS = "5"
MAX_ERRORS = 100
NAME_CHARACTERS = 200
_COUNTED_TEXT = re.compile(r"Value should have (at (?:most|least) \d+) items? after validation, not .*")
_KIND_OF_VALUE = re.compile(r"(function-[a-z]+|list|dict|set|tuple|nullable|union|chain)\[.*\]", re.DOTALL)


# By our own words: the phrases of Python's ``http`` differ from version to version.
_BY_STATUS: dict[int, type[EngramError]] = {
    error.status: error
    for error in (
        MalformedRequestError,
        UnauthorizedError,
        ForbiddenError,
        NotFoundError,
        ConflictError,
        PayloadTooLargeError,
        UnsupportedMediaTypeError,
        InvalidRequestError,
        TooManyRequestsError,
        LlmError,
        UnavailableError,
        NotInstalledError,
    )
}


def responses(*statuses: int, embeds: bool = False) -> dict[int | str, dict[str, Any]]:
    """OpenAPI entries for the problems a route can answer; one that an LLM may fail may also find none.

    Args:
        embeds: it may embed text for a collection, which may be of another encoder.
    """
    titles = {status: _BY_STATUS[status].title for status in statuses}
    if embeds:
        title, status = EmbeddingSpaceMismatchError.title, EmbeddingSpaceMismatchError.status
        titles[status] = f"{titles[status]} (see `type`). {title}" if status in titles else title
    if LlmError.status in titles:
        titles[503] = "Temporarily unavailable, or no LLM endpoint is configured (see `type`)"
    return {
        status: {
            "description": titles[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in titles
    }


def install(app: FastAPI) -> None:
    """Make ``app`` answer every failure with a problem document."""
    app.add_exception_handler(EngramError, _engram)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _report_unexpected)


def document(
    status: int,
    kind: str,
    title: str,
    detail: str,
    *,
    request: Scope | None = None,
    headers: Mapping[str, str] | None = None,
    **extra: Any,
) -> JSONResponse:
    """The response of one problem, also in the words that the clients of the requested path look for."""
    dialect = error_dialects.dialect_error(request, status, kind, detail)
    body = _body(dialect.status, kind, title, detail, extra) | dict(dialect.members)
    return JSONResponse(body, status_code=dialect.status, media_type=MEDIA_TYPE, headers=dict(headers or {}))


def content(error: EngramError) -> dict[str, Any]:
    """One of our own errors, where it stands inside an answer."""
    if error.public_detail != error.detail:
        log.warning("part of a request failed", problem=error.type, detail=error.detail)
    return _body(error.status, error.type, error.title, error.public_detail, error.extra)


def _body(status: int, kind: str, title: str, detail: str, extra: Mapping[str, Any]) -> dict[str, Any]:
    body = {"type": TYPE_PREFIX + kind, "title": title, "status": status, "detail": detail, **extra}
    if (request_id := get_current_id()) is not None:
        body["request_id"] = request_id
    return body


def problem_response(error: EngramError, request: Scope | None = None) -> JSONResponse:
    """The response of one of our own errors, to a request if there is one."""
    headers = {}
    if isinstance(error, UnavailableError):
        headers["Retry-After"] = RETRY_AFTER_SECONDS
    if isinstance(error, TooManyRequestsError) and error.retry_after_seconds is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after_seconds)))
    if isinstance(error, UnauthorizedError):
        headers["WWW-Authenticate"] = "Bearer"
    return document(
        error.status, error.type, error.title, error.public_detail, request=request, headers=headers, **error.extra
    )


async def _engram(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, EngramError)  # noqa: S101 - registered for this class alone
    if error.status >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("request failed", problem=error.type, detail=error.detail)
    return problem_response(error, request.scope)


async def _validation(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class alone
    unreadable = next((item for item in error.errors() if item["type"] == "json_invalid"), None)
    if unreadable is not None:
        return problem_response(
            MalformedRequestError(f"The body is not JSON: {unreadable['ctx']['error']}."), request.scope
        )
    missing = next(
        (item for item in error.errors() if item["type"] == "missing" and item["loc"][0] == "header"), None
    )
    if missing is not None:
        return problem_response(
            MalformedRequestError(f"The {str(missing['loc'][1]).title()} header is missing."), request.scope
        )
    errors = [
        {"loc": name_place(item["loc"]), "msg": describe_mistake(item), "type": item["type"]}
        for item in error.errors()[:MAX_ERRORS]
    ]
    detail = "; ".join(f"{'.'.join(item['loc'])}: {item['msg']}" for item in errors[:3])
    invalid = InvalidRequestError(
        _replace_unprintable(detail) or "The request is invalid.", errors=_clean_errors(errors)
    )
    return problem_response(invalid, request.scope)


def describe_mistake(mistake: Mapping[str, Any]) -> str:
    """Return the message of a mistake, with its input, as pydantic gives it; it counts characters as items."""
    message: str = mistake["msg"]
    return _COUNTED_TEXT.sub(r"must have \1 characters", message) if isinstance(mistake["input"], str) else message


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class alone
    problem_kind = _BY_STATUS.get(error.status_code)
    title = problem_kind.title if problem_kind else http.HTTPStatus(error.status_code).phrase
    kind = problem_kind.type if problem_kind else title.lower().replace(" ", "-")
    headers = dict(error.headers or {})
    if error.status_code == http.HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(_methods(request))
    return document(error.status_code, kind, title, str(error.detail), request=request.scope, headers=headers)


def _methods(request: Request) -> list[str]:
    """Return the methods that the path allows; Starlette names those of its first route only."""
    scope = {name: request.scope.get(name) for name in ("type", "path", "raw_path")}
    scope["root_path"] = request.scope.get("root_path", "")
    everything = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
    routes = request.app.router.routes
    return [
        method
        for method in everything
        if any(route.matches(scope | {"method": method})[0] is Match.FULL for route in routes)
    ]


async def _report_unexpected(request: Request, error: Exception) -> JSONResponse:
    log.error("unexpected failure", path=request.url.path, exc_info=error)
    detail = "Engram failed unexpectedly; the log says more."
    return document(500, "internal", "Internal error", detail, request=request.scope)


def name_place(location: Sequence[object]) -> list[str]:
    """The names on the way to a mistake, without Pydantic's own for kinds of values: these show functions."""
    return [part[:NAME_CHARACTERS] for part in map(str, location) if not _KIND_OF_VALUE.fullmatch(part)]


def _clean_errors(errors: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {key: _replace_unprintable(value) if isinstance(value, str) else value for key, value in item.items()}
        | {"loc": [_replace_unprintable(part) for part in item["loc"]]}
        for item in errors
    ]


def _replace_unprintable(text: str) -> str:
    """The text without what UTF-8 cannot carry."""
    return text.encode("utf-8", "replace").decode()
