"""Administrative acts are recorded: before they are done, and once more when it is known what came of them.

What cannot be recorded is not done. A route that changes something is one if it takes scope `admin` or `moderate`,
or says so itself: others are called in the course of things, by a frontend or a judge.
"""

from collections.abc import Callable, Collection, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from engram.api.client_address import client_address
from engram.api.dependencies import RequiredScope
from engram.api.request_principal import asker
from engram.context.errors import EngramError, InvalidRequestError
from engram.services.maintenance.audit_recording import AuditLog, PendingAct
from engram.telemetry.request_id import get_current_id

Handle = Callable[[Request], Coroutine[Any, Any, Response]]
READING = frozenset({"GET", "HEAD", "OPTIONS"})
FAILURE_STATUS = 500


def is_act(methods: Collection[str] | None, need: RequiredScope | None) -> bool:
    """Whether a route with this need is recorded."""
    return need is not None and need.recorded and not READING.issuperset(methods or ())


def record_requests(name: str, handle: Handle) -> Handle:
    """``handle``, with a record of each time."""

    async def run(request: Request) -> Response:
        audit_log: AuditLog = request.app.state.services.maintenance.audit_log
        principal, url = asker(request.scope), request.url
        act = PendingAct(
            principal=principal.name,
            tenant=principal.tenant,
            client=client_address(request.scope),
            request_id=get_current_id(),
            action=name,
            target=url.path + (f"?{url.query}" if url.query else ""),
            body=(await request.body()).decode("utf-8", "replace"),
        )
        entry = await run_in_threadpool(audit_log.begin, act)
        status = FAILURE_STATUS
        try:
            response = await handle(request)
            status = response.status_code
        except Exception as error:
            status = _status(error)
            raise
        else:
            return response
        finally:
            await run_in_threadpool(audit_log.end, entry, status)

    return run


def _status(error: Exception) -> int:
    if isinstance(error, EngramError):
        return error.status
    if isinstance(error, HTTPException):
        return error.status_code
    return InvalidRequestError.status if isinstance(error, RequestValidationError) else FAILURE_STATUS
