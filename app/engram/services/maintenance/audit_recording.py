"""The record of what administrators do, by the API and on the command line."""

import os
import pwd
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from engram.context import tenancy
from engram.context.errors import EngramError, UnavailableError
from engram.services.auth.scope import LOCAL, Principal
from engram.storage.database import Database
from engram.storage.maintenance import audit_log
from engram.storage.maintenance.audit_log import Act

log = structlog.get_logger(__name__)

SAID_CHARACTERS = 2_000
"""Kept of a path and of a body."""
DONE, FAILED = 200, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingAct:
    """What somebody is about to do.

    Attributes:
        client: the address that it comes from.
        target: what it is done to: a path, or what a command was given.
        said: the body.
    """

    principal: str
    tenant: str
    action: str
    target: str
    client: str | None = None
    request_id: str | None = None
    said: str | None = None


class ActsService:
    """Records acts, and shows a tenant its own; connections that serve a tenant see none."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, doing: PendingAct) -> int:
        """Record it, before it is done.

        Raises:
            UnavailableError: that is not possible, so it must not be done.
        """
        with tenancy.of(None), self._database.write_once() as writer:
            return audit_log.begin(
                writer,
                principal=doing.principal,
                tenant=doing.tenant,
                client=doing.client,
                request_id=doing.request_id,
                action=doing.action,
                target=_shortened(doing.target),
                body=_shortened(doing.said or "") or None,
            )

    def end(self, act: int, status: int) -> None:
        """Record what came of it; if that is not possible, it stays open, as that of a lost process does."""
        try:
            with tenancy.of(None), self._database.write_once() as writer:
                audit_log.end(writer, act, status)
        except UnavailableError as error:
            log.warning("outcome not recorded", act=act, status=status, error=error.detail)

    @contextmanager
    def on_command(self, action: str, target: str) -> Iterator[None]:
        """Record the block as what whoever runs this command does."""
        act = self.begin(PendingAct(principal=_user(), tenant=LOCAL.tenant, action=action, target=target))
        try:
            yield
        except EngramError as error:
            self.end(act, error.status)
            raise
        except BaseException:
            self.end(act, FAILED)
            raise
        self.end(act, DONE)

    def page(self, principal: Principal, before: int | None, limit: int) -> Sequence[Act]:
        """Acts of the principal's tenant, the latest first."""
        with tenancy.of(None), self._database.read() as reader:
            return audit_log.page(reader, principal.tenant, before, limit)


def _shortened(value: str) -> str:
    """As much of a text as is kept, without what Postgres cannot hold."""
    return value[:SAID_CHARACTERS].replace("\x00", "").encode("utf-8", "replace").decode()


def _user() -> str:
    """Who runs this process, as the system knows them."""
    uid = os.geteuid()
    try:
        return f"cli:{pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"cli:{uid}"
