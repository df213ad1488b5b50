"""Erasure of one query, one judge, one principal, or a span of time; and its receipts."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Response, status

from engram.api.body_reading import Route
from engram.api.dependencies import App, OptionalKey, PathScope, QueryScope, needs
from engram.api.erasure.schemas import ErasureOut, ErasuresOut
from engram.api.jobs.routes import build_accepted
from engram.api.jobs.schemas import AcceptedJob
from engram.api.operations import operation
from engram.api.schemas import JudgeName, Moment, Text
from engram.core.auth.access_keys import ADMIN
from engram.services.auth.scope import Scope
from engram.services.erasure.erasure_service import ErasureRequest

router = APIRouter(tags=["erasure"], route_class=Route)

Anonymise = Annotated[
    bool, Query(description="Keep what the verdicts taught, under a random judge and without the question's words.")
]


@router.delete(
    "/queries/{query_id}",
    status_code=status.HTTP_202_ACCEPTED,
    **operation("Erase a query", needs(ADMIN, takes="jobs"), 400, 404),
)
def delete_query(
    query_id: UUID, scope: QueryScope, response: Response, app: App, key: OptionalKey, anonymise: Anonymise = False
) -> AcceptedJob:
    """Start a job that erases a query with its verdicts, and the other queries of its session."""
    return _erase(
        app, scope, response, ErasureRequest.build("query", queries=(query_id,), anonymise=anonymise), key
    )


@router.delete(
    "/queries",
    status_code=status.HTTP_202_ACCEPTED,
    **operation("Erase queries by date", needs(ADMIN, takes="jobs"), 400, 404),
)
def delete_queries(
    scope: QueryScope,
    response: Response,
    app: App,
    key: OptionalKey,
    since: Annotated[Moment | None, Query(alias="from", description="What came since.")] = None,
    before: Annotated[Moment | None, Query(alias="to", description="What came before that.")] = None,
    anonymise: Anonymise = False,
) -> AcceptedJob:
    """Start a job that erases what was asked and judged in a span of time."""
    request = ErasureRequest.build("span", since=since, before=before, anonymise=anonymise)
    return _erase(app, scope, response, request, key)


@router.delete(
    "/collections/{name}/judges/{judge:text}",
    status_code=status.HTTP_202_ACCEPTED,
    **operation("Erase a judge", needs(ADMIN, takes="jobs"), 400, 404),
)
def delete_judge(
    scope: PathScope,
    judge: Annotated[JudgeName, Path(description="The judge's name.")],
    response: Response,
    app: App,
    key: OptionalKey,
    anonymise: Anonymise = False,
) -> AcceptedJob:
    """Start a job that erases a judge: what the judge said, and what that taught."""
    return _erase(app, scope, response, ErasureRequest.build("judge", name=judge, anonymise=anonymise), key)


@router.delete(
    "/collections/{name}/principals/{principal:text}",
    status_code=status.HTTP_202_ACCEPTED,
    **operation("Erase a principal", needs(ADMIN, takes="jobs"), 400, 404, 409),
)
def delete_principal(
    scope: PathScope,
    principal: Annotated[Text, Path(max_length=200, description="The principal's name.")],
    response: Response,
    app: App,
    key: OptionalKey,
    anonymise: Anonymise = False,
) -> AcceptedJob:
    """Start a job that erases all that a principal asked, judged and clicked, and what that taught.

    A principal whose access key still counts is a conflict: revoke the key first.
    """
    return _erase(app, scope, response, ErasureRequest.build("principal", name=principal, anonymise=anonymise), key)


@router.get("/collections/{name}/erasures", **operation("List erasures", needs(ADMIN), 404))
def get_erasures(scope: PathScope, app: App) -> ErasuresOut:
    """List the receipts of erasures: what was removed, and which backups still have it."""
    receipts = app.revocation.erasure.list_receipts(scope)
    return ErasuresOut(
        collection=scope.collection.name, erasures=[ErasureOut.from_service(receipt) for receipt in receipts]
    )


def _erase(app: App, scope: Scope, response: Response, request: ErasureRequest, key: str | None) -> AcceptedJob:
    return build_accepted(app.revocation.erasure.request(scope, request, key), scope.collection.name, response)
