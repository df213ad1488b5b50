"""Recording of administrative acts, from the API and the command line."""

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
from engram.storage.maintenance.audit_log import AuditEntry

log = structlog.get_logger(__name__)

MAX_CHARACTERS = 2_000
"""Characters of a path or a body that are kept."""
DONE, FAILED = 200, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingAct:
    """An administrative act that is about to begin.

    Attributes:
        client: the address that it comes from.
        target: path of the request, or arguments of the command.
        body: body of the request.
    """

    principal: str
    tenant: str
    action: str
    target: str
    client: str | None = None
    request_id: str | None = None
    body: str | None = None


class AuditLog:
    """Records administrative acts and lists those of a tenant.

    Database connections that serve a tenant see no row of the log.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, act: PendingAct) -> int:
        """Record an act before it is done, and return the id of its entry.

        Raises:
            UnavailableError: nothing was recorded, so the act must not be done.
        """
        with tenancy.allow_all_tenants(), self._database.write_once() as writer:
            return audit_log.begin(
                writer,
                principal=act.principal,
                tenant=act.tenant,
                client=act.client,
                request_id=act.request_id,
                action=act.action,
                target=_shorten(act.target),
                body=_shorten(act.body or "") or None,
            )

    def end(self, entry: int, status: int) -> None:
        """Record the outcome of an act. If that fails, its entry stays without one."""
        try:
            with tenancy.allow_all_tenants(), self._database.write_once() as writer:
                audit_log.end(writer, entry, status)
        except UnavailableError as error:
            log.warning("outcome not recorded", entry=entry, status=status, error=error.detail)

    @contextmanager
    def on_command(self, action: str, target: str) -> Iterator[None]:
        """Record the block as an act of the user who runs this process."""
        entry = self.begin(PendingAct(principal=_user(), tenant=LOCAL.tenant, action=action, target=target))
        try:
            yield
        except EngramError as error:
            self.end(entry, error.status)
            raise
        except BaseException:
            self.end(entry, FAILED)
            raise
        self.end(entry, DONE)

    def page(self, principal: Principal, before: int | None, limit: int) -> Sequence[AuditEntry]:
        """Return entries of the principal's tenant, the latest first."""
        with tenancy.allow_all_tenants(), self._database.read() as reader:
            return audit_log.page(reader, principal.tenant, before, limit)


def _shorten(value: str) -> str:
    """Shorten a text, without characters that Postgres cannot hold."""
    return value[:MAX_CHARACTERS].replace("\x00", "").encode("utf-8", "replace").decode()


def _user() -> str:
    """Return the name of the system user who runs this process."""
    uid = os.geteuid()
    try:
        return f"cli:{pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"cli:{uid}"
