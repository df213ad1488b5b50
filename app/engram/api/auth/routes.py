"""Access keys of one's tenant: made, listed, followed by others, revoked."""

from typing import Annotated

from fastapi import APIRouter, Query, status

from engram.api.auth.schemas import (
    AccessKeyIn,
    AccessKeyOut,
    AccessKeysOut,
    IssuedAccessKey,
    QuotaOut,
    QuotasOut,
    RotateIn,
    TenantRemoval,
    WhoOut,
)
from engram.api.body_reading import Route
from engram.api.dependencies import App, Asker, EventId, Limit, cut_page, needs
from engram.api.operations import operation
from engram.api.problems import responses
from engram.api.schemas import MAX_ID, JudgeName
from engram.core.auth.access_keys import ADMIN

router = APIRouter(tags=["access"], route_class=Route)

ConfirmQuery = Annotated[JudgeName, Query(description="The tenant's name, as there is no way back.")]


@router.get("/access/me", response_model=WhoOut, responses=responses(401), summary="Whose key is this?")
async def get_own_access(app: App, asker: Asker) -> WhoOut:
    """Show who you are by your key, its scopes, and which optional features are on."""
    return WhoOut(
        name=asker.name,
        tenant=asker.tenant,
        judge=asker.judges_as,
        trusted=asker.trusted,
        scopes=asker.grants.as_json(),
        llm_tokens=asker.llm_tokens,
        principals=list(asker.reads_as),
        wings=[*app.wing_services],
    )


@router.get(
    "/access/quotas", response_model=QuotasOut, responses=responses(401, 403, 503), summary="What may I have?"
)
def get_own_quotas(app: App, asker: Asker) -> QuotasOut:
    """Show the quotas of your tenant and their use. Days are UTC.

    Where passages have readers, it takes `admin`: it counts what others may not see.
    """
    app.auth.access.check_whole_tenant(asker)
    return QuotasOut(
        tenant=asker.tenant, quotas=[QuotaOut.model_validate(one) for one in app.auth.quotas.list_usage(asker)]
    )


@router.post(
    "/access/keys",
    status_code=status.HTTP_201_CREATED,
    **operation("Make an access key", needs(ADMIN, everywhere=True), 409, reads_json=True),
)
def post_access_key(body: AccessKeyIn, app: App, asker: Asker) -> IssuedAccessKey:
    """Create an access key in your tenant. It is shown in this answer and never again."""
    app.auth.quotas.admit_key(asker)
    return IssuedAccessKey.from_new_key(app.auth.access_keys.make(asker, body.to_request()))


@router.get("/access/keys", **operation("List access keys", needs(ADMIN, everywhere=True)))
def get_access_keys(
    app: App, asker: Asker, after: Annotated[int, Query(ge=0, le=MAX_ID)] = 0, limit: Limit = 100
) -> AccessKeysOut:
    """List the tenant's access keys in the order of their creation, including revoked and expired ones."""
    keys, last = cut_page(app.auth.access_keys.page(asker, after, limit + 1), limit)
    return AccessKeysOut(
        keys=[AccessKeyOut.model_validate(key) for key in keys],
        next_after=last and last.id,
    )


@router.post(
    "/access/keys/{key_id}/rotate",
    status_code=status.HTTP_201_CREATED,
    **operation("Let another key follow one", needs(ADMIN, everywhere=True), 404, 409, reads_json=True),
)
def post_rotate_access_key(key_id: EventId, body: RotateIn, app: App, asker: Asker) -> IssuedAccessKey:
    """Make the successor of an access key, with its scopes. The old key stays valid for `grace_seconds`."""
    app.auth.quotas.admit_key(asker)
    return IssuedAccessKey.from_new_key(app.auth.access_keys.rotate(asker, key_id, body.grace_seconds))


@router.delete("/access/keys/{key_id}", **operation("Revoke an access key", needs(ADMIN, everywhere=True), 404))
def delete_access_key(key_id: EventId, app: App, asker: Asker) -> AccessKeyOut:
    """Revoke an access key. Each process notices within 5 seconds."""
    return AccessKeyOut.model_validate(app.auth.access_keys.revoke(asker, key_id))


@router.delete(
    "/access/tenant",
    status_code=status.HTTP_202_ACCEPTED,
    **operation("Remove one's own tenant with all that it has", needs(ADMIN, everywhere=True), 409),
)
def delete_tenant(app: App, asker: Asker, confirm: ConfirmQuery) -> TenantRemoval:
    """Remove your tenant: its collections with all that they learned, its access keys, quotas and audit log.

    From now on none of its keys counts; a worker removes the rest. There is no way back.
    """
    app.maintenance.closing.close(asker.tenant, confirm)
    return TenantRemoval(tenant=asker.tenant)
