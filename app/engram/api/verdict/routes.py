"""Judging: verdicts on answered queries."""

import asyncio
from dataclasses import asdict
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response, status
from starlette.concurrency import run_in_threadpool

from engram.api.dependencies import (
    App,
    EventId,
    Limit,
    OptionalKey,
    Posted,
    PostedBody,
    QueryScope,
    RequiredKey,
    VerdictAt,
    cut_page,
    needs,
    read_frequent_body,
)
from engram.api.jobs.routes import build_accepted
from engram.api.jobs.schemas import AcceptedJob
from engram.api.operations import operation
from engram.api.path_converters import FeedbackRoute
from engram.api.schemas import MAX_ID
from engram.api.verdict.schemas import (
    ChangeOut,
    FeedbackDetail,
    FeedbackIn,
    FeedbackOut,
    FeedbackPage,
    KeyEffectOut,
    ListedFeedbackOut,
    NamedSentenceOut,
    RetryIn,
    RetryOut,
    RevokeIn,
)
from engram.composition.container import Application
from engram.context.errors import EmbeddingSpaceMismatchError, GoneError
from engram.core.auth.access_keys import JUDGE, MODERATE
from engram.services.auth.scope import LOCAL, Scope
from engram.services.judges.verdict_listing import VerdictSummary
from engram.services.verdict.receipt import Receipt

router = APIRouter(tags=["feedback"], route_class=FeedbackRoute)


@router.post(
    "/feedback",
    status_code=status.HTTP_202_ACCEPTED,
    **operation(
        "Judge an answered query",
        needs(JUDGE, takes="verdicts", readers="bound"),
        404,
        reads_json=True,
        embeds=True,
        answers={
            200: {"model": FeedbackOut, "description": "Applied, or revoked since; `changes` says what it did."}
        },
    ),
)
async def post_feedback(
    sent: Annotated[PostedBody[FeedbackIn], Depends(read_frequent_body(FeedbackIn))],
    response: Response,
    app: App,
    key: RequiredKey,
) -> FeedbackOut:
    """Store a verdict once under its Idempotency-Key; a worker applies it, or this request with `wait`.

    A rating replaces the judge's earlier one of the same answer.
    """
    body = sent.body
    with sent.scope.act_as(body.as_) as scope:
        try:
            receipt = await _accept_verdict(app, scope, body, key)
        except (GoneError, EmbeddingSpaceMismatchError):  # another collection may have the name now
            named_now = await run_in_threadpool(app.auth.access.scope, body.collection, scope.principal, JUDGE)
            receipt = await _accept_verdict(app, named_now, body, key)
    if receipt.event.status in {"applied", "revoked"}:
        response.status_code = status.HTTP_200_OK
    return FeedbackOut(**format_receipt(receipt, body.collection))


async def _accept_verdict(app: Application, scope: Scope, body: FeedbackIn, key: str) -> Receipt:
    """Do what ``VerdictService.accept`` does, with the verdict stored in the background."""
    if scope.principal is not LOCAL:
        await run_in_threadpool(admit_judge, app, scope, body.judge)
    verdict, wait = body.to_verdict(scope), body.wait
    if verdict.expansions:
        await run_in_threadpool(app.learning.log.check_expansions, verdict)
    event = await asyncio.wrap_future(app.learning.log.store_soon(verdict, key, announced=not wait))

    def follow_up() -> Receipt:
        receipt = app.learning.verdicts.follow_up(verdict, event, wait=wait)
        if wait:
            app.auth.reads.note_write(event.collection_id)
        return receipt

    return await run_in_threadpool(follow_up) if wait or verdict.rating is not None else Receipt(event)


@router.get("/feedback/{feedback_id}", **operation("Read a verdict", needs(JUDGE, readers="bound"), 404))
def get_feedback(app: App, at: VerdictAt) -> FeedbackDetail:
    """Show a verdict, whether it is applied, and what it changed."""
    detail = app.learning.verdicts.read(at.scope, at.id)
    app.auth.reads.note_write(at.scope.collection.id)
    return _detail(detail, at.scope.collection.name)


@router.get("/feedback", **operation("List verdicts", needs(JUDGE, readers="bound"), 404))
def list_feedback(
    app: App,
    scope: QueryScope,
    status: Annotated[Literal["pending", "applied", "parked", "revoked"] | None, Query()] = None,
    after: Annotated[int, Query(ge=0, le=MAX_ID)] = 0,
    before: Annotated[
        int | None, Query(ge=1, le=MAX_ID, description="Those accepted before this one, the latest first.")
    ] = None,
    query_id: Annotated[UUID | None, Query(description="Only verdicts on this answer.")] = None,
    stale: Annotated[
        bool, Query(description="Only those that name a sentence that is gone, or that was revised since.")
    ] = False,
    limit: Limit = 100,
) -> FeedbackPage:
    """List verdicts in order of acceptance, with their questions and the sentences that they name.

    `status=parked` shows those that could not be applied. Without scope `audit` the list has your own verdicts.
    """
    listed = app.learning.verdict_listing.page(
        scope, status=status, after=after, before=before, limit=limit + 1, query=query_id, stale=stale
    )
    page, last = cut_page(listed, limit)
    following = last and last.event.id
    return FeedbackPage(
        feedback=[_format_listed(summary, scope.collection.name) for summary in page],
        next_after=following if before is None else None,
        next_before=None if before is None else following,
    )


@router.delete(
    "/feedback/{feedback_id}", **operation("Revoke a verdict", needs(JUDGE, recorded=True, readers="bound"), 404)
)
def delete_feedback(feedback_id: EventId, app: App, scope: QueryScope) -> FeedbackDetail:
    """Revoke a verdict: what was learned becomes what the remaining verdicts give.

    It stays in the log as `revoked`; revoking it again changes nothing. One that waits is never applied.
    """
    app.learning.revocation.revoke(scope, feedback_id)
    app.auth.reads.note_write(scope.collection.id)
    return _detail(app.learning.verdicts.read(scope, feedback_id), scope.collection.name)


@router.post(
    "/feedback/revoke",
    status_code=status.HTTP_202_ACCEPTED,
    **operation("Revoke many verdicts", needs(MODERATE, takes="jobs"), 404, reads_json=True),
)
def post_revoke(sent: Posted[RevokeIn], response: Response, app: App, key: OptionalKey) -> AcceptedJob:
    """Start a job that revokes all matching verdicts accepted so far: of a judge, of a span of time, or all.

    Those that wait are revoked at once. The others follow batch by batch, each of which leaves what is learned as
    if its verdicts had never come.
    """
    body = sent.body
    job_id = app.learning.revocation.request(sent.scope, body.judge, body.since, body.before, key)
    return build_accepted(job_id, body.collection, response)


@router.post("/feedback/retry", **operation("Retry parked verdicts", needs(MODERATE), 404, reads_json=True))
def post_retry(sent: Posted[RetryIn], app: App) -> RetryOut:
    """Retry all verdicts that could not be applied. Use it once the cause is mended."""
    body = sent.body
    return RetryOut(collection=body.collection, retried=app.learning.parked.retry_all(sent.scope, body.judge))


@router.post(
    "/feedback/{feedback_id}/retry",
    status_code=status.HTTP_202_ACCEPTED,
    **operation("Retry a parked verdict", needs(MODERATE), 404, 409),
)
def post_retry_one(feedback_id: EventId, app: App, scope: QueryScope) -> FeedbackOut:
    """Retry a verdict that could not be applied; `error` says how the last try failed.

    One that is not parked is a conflict: it waits already, is applied, or is revoked.
    """
    event = app.learning.parked.retry(scope, feedback_id)
    return FeedbackOut(**format_receipt(Receipt(event), scope.collection.name))


def admit_judge(app: App, scope: Scope, claimed: str | None) -> None:
    """Count the judge among the tenant's.

    Raises:
        ForbiddenError: the principal may not judge by the claimed name.
        QuotaExceededError: the tenant has no room for another judge.
    """
    judge, _ = scope.judge(claimed)
    app.auth.quotas.admit(scope.principal, judge)


def _format_listed(summary: VerdictSummary, collection: str) -> ListedFeedbackOut:
    return ListedFeedbackOut(
        **format_receipt(Receipt(summary.event), collection),
        question=summary.question,
        rating=summary.rating,
        reason=summary.reason,
        supporting_passages=summary.passages,
        sentences=[NamedSentenceOut.model_validate(one) for one in summary.sentences],
        sentences_cut=summary.sentences_cut,
    )


def _detail(receipt: Receipt, collection: str) -> FeedbackDetail:
    return FeedbackDetail(**format_receipt(receipt, collection), verdict=asdict(receipt.event.verdict))


def format_receipt(receipt: Receipt, collection: str) -> dict[str, object]:
    """Format the fields of ``FeedbackOut``."""
    event = receipt.event
    return {
        "feedback_id": event.id,
        "query_id": event.query_id,
        "collection": collection,
        "status": event.status,
        "judge": event.judge,
        "received_at": event.received_at,
        "applied_at": event.applied_at,
        "revoked_at": event.revoked_at,
        "error": event.error,
        "changes": None
        if receipt.changes is None
        else [ChangeOut.model_validate(change) for change in receipt.changes],
        "effect": receipt.effect,
        "keys": None if receipt.keys is None else KeyEffectOut.model_validate(receipt.keys),
    }
