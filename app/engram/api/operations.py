"""Descriptions of routes: what one needs, reads and may answer besides its result."""

from collections.abc import Mapping
from typing import Any

from fastapi import Depends, params

from engram.api.dependencies import json_body, limit_time, needs
from engram.api.problems import responses
from engram.core.auth.access_keys import QUERY


def operation(
    summary: str,
    need: params.Depends,
    *problems: int,
    reads_json: bool = False,
    limited: bool = False,
    embeds: bool = False,
    answers: Mapping[int | str, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Describe a route, as keyword arguments of its decorator. Every route may answer 422 and 503.

    Args:
        summary: for the documentation.
        need: scope that the route requires, by ``needs``.
        problems: further status codes of problems.
        reads_json: whether the body must be JSON; adds the problems 400, 413 and 415.
        limited: whether the request is given up after a time, or once its client leaves.
        embeds: whether the route may embed text for a collection, which may be of another encoder.
        answers: further answers that are no problems, as OpenAPI has them.
    """
    body = (Depends(json_body),) if reads_json else ()
    time = (Depends(limit_time),) if limited else ()
    statuses = {*problems, 422, 503, *((400, 413, 415) if reads_json else ())}
    return {
        "summary": summary,
        "dependencies": [need, *body, *time],
        "responses": responses(*sorted(statuses), embeds=embeds) | dict(answers or {}),
    }


def question_operation(
    summary: str, *problems: int, answers: Mapping[int | str, dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Describe a route that answers a question from a collection, within the time that a request has.

    It sees passages as its caller may.
    """
    needed = needs(QUERY, takes="queries", readers="bound")
    return operation(summary, needed, 404, *problems, reads_json=True, limited=True, embeds=True, answers=answers)
