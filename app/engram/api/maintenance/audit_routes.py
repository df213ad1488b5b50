"""Route that lists the audit log."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from engram.api.body_reading import Route
from engram.api.dependencies import App, Asker, Limit, cut_page, needs
from engram.api.operations import operation
from engram.api.schemas import MAX_ID, ResponseModel
from engram.core.auth.access_keys import AUDIT

router = APIRouter(tags=["audit"], route_class=Route)


class AuditEntryOut(ResponseModel):
    """One administrative act."""

    id: int
    begun_at: datetime
    ended_at: datetime | None = Field(description="Null while it goes on, or if its process was lost.")
    principal: str = Field(description="Who did it; of a command, `cli:` and the system's user.")
    client: str | None = Field(description="The address it came from.")
    request_id: str | None
    action: str
    target: str = Field(description="The path, or what the command was given.")
    body: str | None = Field(description="The body, its first 2,000 characters.")
    status: int | None = Field(description="Of the answer: below 300 it was done.")


class AuditLogOut(BaseModel):
    """Entries of the audit log, the latest first."""

    entries: list[AuditEntryOut]
    next_before: int | None = Field(description="What to send as `before` for the next page; null at the end.")


@router.get("/audit", **operation("Read the audit log", needs(AUDIT, everywhere=True)))
def get_audit(
    app: App,
    asker: Asker,
    before: Annotated[int | None, Query(ge=1, le=MAX_ID, description="Only entries before this one.")] = None,
    limit: Limit = 100,
) -> AuditLogOut:
    """List who changed settings, judges, keys or jobs, revoked verdicts or removed collections, or tried to."""
    entries, last = cut_page(app.maintenance.audit_log.page(asker, before, limit + 1), limit)
    return AuditLogOut(
        entries=[AuditEntryOut.model_validate(entry) for entry in entries],
        next_before=last and last.id,
    )
