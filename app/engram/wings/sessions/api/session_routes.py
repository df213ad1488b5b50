"""Sessions: started, read, followed as they go, gone on with, cancelled."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Query, Response, status
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from engram.api.body_reading import Route
from engram.api.dependencies import (
    App,
    Limit,
    OptionalKey,
    Posted,
    QueryScope,
    RequiredKey,
    ResourceAccess,
    cut_page,
    needs,
)
from engram.api.operations import operation
from engram.api.schemas import OnBehalfOfQuery
from engram.api.verdict.routes import admit_judge, format_receipt
from engram.composition.container import Application
from engram.core.auth.access_keys import JUDGE, QUERY
from engram.services.auth.scope import LOCAL, Scope
from engram.wings.sessions.api.session_access import PostedToSession, SessionAt, read_session_body
from engram.wings.sessions.api.session_schemas import (
    AcceptedSession,
    ListedSessionOut,
    RoundIn,
    RoundOut,
    SessionFeedbackIn,
    SessionFeedbackOut,
    SessionIn,
    SessionOut,
    SessionsOut,
)
from engram.wings.sessions.core.session import Status
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.session_views import SessionProgress

router = APIRouter(tags=["sessions"], route_class=Route)

POLL_SECONDS = 0.2
KEEP_ALIVE_SECONDS = 15.0
"""After which a stream on which nothing happened says so, lest somebody between closes it."""
EVENT = {
    "type": "object",
    "description": "Each of the events.",
    "properties": {
        "event": {"type": "string", "enum": ["round", "end"]},
        "id": {"type": "string"},
        "data": {
            "type": "string",
            "description": "JSON: of a round as the session shows it, of the end the session.",
        },
    },
    "required": ["event", "data"],
}
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": (
            "Server-sent events: a `round` for each round, whose id is its number, then `end`, with the session. "
            "Send the last id that you have as `Last-Event-ID` to go on after it."
        ),
        "content": {"text/event-stream": {"schema": EVENT}},
    }
}
_ENDED_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": SessionOut, "description": "It was waited for, and has ended."}
}


@router.post(
    "/sessions",
    status_code=status.HTTP_202_ACCEPTED,
    **operation(
        "Start a session",
        needs(QUERY, takes="queries", readers="bound"),
        404,
        reads_json=True,
        embeds=True,
        answers=_ENDED_RESPONSES,
    ),
)
def post_session(
    sent: Posted[SessionIn], response: Response, app: App, key: OptionalKey
) -> AcceptedSession | SessionOut:
    """Start a session: rounds of retrieval for one question, until it is covered or a budget is spent.

    A worker does the rounds, or this request with `wait`: then it is answered with the session.
    """
    if sent.scope.principal is not LOCAL:
        app.auth.quotas.take(sent.scope.principal, "sessions")
    with sent.scope.act_as(sent.body.as_) as scope:
        session = sessions_of(app).sessions.start(scope, sent.body.to_session(), key)
        return _answer_session(app, scope, session, response, wait=sent.body.wait)


@router.get("/sessions", **operation("List sessions", needs(QUERY, readers="bound"), 404))
def get_sessions(
    app: App,
    scope: QueryScope,
    status: Annotated[Status | None, Query()] = None,
    before: Annotated[UUID | None, Query(description="A session: only those begun before it.")] = None,
    limit: Limit = 100,
    on_behalf_of: OnBehalfOfQuery = None,
) -> SessionsOut:
    """List the collection's sessions, the latest first: your own, or with scope `audit` everybody's."""
    with scope.act_as(on_behalf_of) as acted:
        rows = sessions_of(app).sessions.page(acted, status, before, limit + 1)
    sessions_page, last = cut_page(rows, limit)
    return SessionsOut(
        collection=scope.collection.name,
        sessions=[ListedSessionOut.from_service(one) for one in sessions_page],
        next_before=last and last.id,
    )


@router.get("/sessions/{session_id}", **operation("Read a session", needs(QUERY, readers="bound"), 404))
def get_session(app: App, at: SessionAt, on_behalf_of: OnBehalfOfQuery = None) -> SessionOut:
    """Show a session: its pool with citations, its rounds, why it stopped and what it cost."""
    with at.scope.act_as(on_behalf_of) as scope:
        return SessionOut.from_service(sessions_of(app).sessions.read(scope, at.id))


@router.get(
    "/sessions/{session_id}/events",
    response_class=StreamingResponse,
    **operation("Follow a session", needs(QUERY, readers="bound"), 404, answers=EVENTS),
)
def get_events(
    app: App,
    at: SessionAt,
    last_event_id: Annotated[int, Header(ge=0, le=10_000, description="Rounds that you have seen.")] = 0,
    on_behalf_of: OnBehalfOfQuery = None,
) -> StreamingResponse:
    """Stream a session's rounds as server-sent events until it ends."""
    first = _look(app, at, on_behalf_of, last_event_id)  # there is none: say so while it can be said
    return StreamingResponse(
        _events(app, at, on_behalf_of, last_event_id, first),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


@router.post(
    "/sessions/{session_id}/rounds",
    status_code=status.HTTP_202_ACCEPTED,
    **operation(
        "Run one more round",
        needs(QUERY, takes="queries", readers="bound"),
        404,
        409,
        reads_json=True,
        answers=_ENDED_RESPONSES,
    ),
)
def post_round(
    sent: Annotated[PostedToSession[RoundIn], Depends(read_session_body(RoundIn))], response: Response, app: App
) -> AcceptedSession | SessionOut:
    """Run one more round of a stopped session: with a sub-question or evidence of yours, or as its planner would.

    One that runs, was cancelled or has spent its budget is a conflict.
    """
    with sent.scope.act_as(sent.body.as_) as scope:
        sessions_of(app).sessions.go_on(scope, sent.session_id, sent.body.question, sent.body.named)
        return _answer_session(app, scope, sent.session_id, response, wait=sent.body.wait)


@router.post(
    "/sessions/{session_id}/feedback",
    status_code=status.HTTP_202_ACCEPTED,
    **operation(
        "Judge a session",
        needs(JUDGE, takes="verdicts", readers="bound"),
        404,
        reads_json=True,
        embeds=True,
        answers={
            200: {
                "model": SessionFeedbackOut,
                "description": "Applied, or revoked since; `changes` says what it did.",
            }
        },
    ),
)
def post_session_feedback(
    sent: Annotated[PostedToSession[SessionFeedbackIn], Depends(read_session_body(SessionFeedbackIn))],
    response: Response,
    app: App,
    key: RequiredKey,
) -> SessionFeedbackOut:
    """Store a verdict on a session once under its Idempotency-Key: once for each query of its rounds that it names.

    The session's own question hears all of it, each sub-question what it found. The answer is that of the own
    question's verdict.
    """
    with sent.scope.act_as(sent.body.as_) as scope:
        return _judge_session(app, scope, sent, key, response)


def _judge_session(
    app: Application, scope: Scope, sent: PostedToSession[SessionFeedbackIn], key: str, response: Response
) -> SessionFeedbackOut:
    body, services = sent.body, sessions_of(app)
    state = services.sessions.state(scope, sent.session_id)
    admit_judge(app, scope, body.judge)
    verdict = body.build_verdict(scope, sent.session_id)
    receipts = services.teacher.judge(state, verdict, key, wait=body.wait)
    if body.wait:
        app.auth.reads.note_write(scope.collection.id)
    if all(one.event.status in {"applied", "revoked"} for one in receipts):
        response.status_code = status.HTTP_200_OK
    return SessionFeedbackOut(
        **format_receipt(receipts[0], scope.collection.name),
        session_id=sent.session_id,
        feedback_ids=[one.event.id for one in receipts],
        complete_at=services.teacher.complete_at(state, verdict),
    )


@router.delete("/sessions/{session_id}", **operation("Cancel a session", needs(QUERY, readers="bound"), 404))
def delete_session(app: App, at: SessionAt, on_behalf_of: OnBehalfOfQuery = None) -> SessionOut:
    """End a session. What its rounds found stays; a round that is in hand is not kept."""
    with at.scope.act_as(on_behalf_of) as scope:
        return SessionOut.from_service(sessions_of(app).sessions.cancel(scope, at.id))


def _answer_session(
    app: App, scope: Scope, session: UUID, response: Response, *, wait: bool
) -> AcceptedSession | SessionOut:
    view = sessions_of(app).sessions.wait(scope, session) if wait else None
    if view is not None and view.stored.status != "running":
        response.status_code = status.HTTP_200_OK
        return SessionOut.from_service(view)
    name = scope.collection.name
    url = f"/sessions/{session}?collection={name}"
    response.headers["Location"] = url
    return AcceptedSession(
        session_id=session,
        collection=name,
        status_url=url,
        events_url=f"/sessions/{session}/events?collection={name}",
    )


def _look(
    app: Application, at: ResourceAccess[UUID], on_behalf_of: list[str] | None, after: int
) -> SessionProgress:
    with at.scope.act_as(on_behalf_of) as scope:
        return sessions_of(app).sessions.progress(scope, at.id, after)


async def _events(
    app: Application, at: ResourceAccess[UUID], on_behalf_of: list[str] | None, after: int, first: SessionProgress
) -> AsyncIterator[str]:
    """The stream: each poll is one short look, so that a stream holds neither a thread nor a connection."""
    progress, quiet = first, 0.0
    while True:
        for one in progress.rounds:
            after, quiet = one.number, 0.0
            yield _event("round", RoundOut.from_service(one).model_dump_json(), one.number)
        if progress.status != "running":
            ended = await run_in_threadpool(get_session, app, at, on_behalf_of)
            yield _event("end", ended.model_dump_json(), after)
            return
        await asyncio.sleep(POLL_SECONDS)
        quiet += POLL_SECONDS
        if quiet >= KEEP_ALIVE_SECONDS:
            quiet = 0.0
            yield ": nothing yet\n\n"
        progress = await run_in_threadpool(_look, app, at, on_behalf_of, after)


def _event(kind: str, data: str, number: int) -> str:
    return f"event: {kind}\nid: {number}\ndata: {data}\n\n"
