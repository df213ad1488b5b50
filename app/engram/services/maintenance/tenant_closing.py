"""Removing tenants: a tenant is closed at once, and then all that it has goes, collection by collection.

If a removal is interrupted, the next one goes on with it: workers look for tenants that were closed.
"""

from collections.abc import Callable
from contextlib import suppress

import structlog

from engram.context import tenancy
from engram.context.errors import ConflictError, InvalidRequestError, NotFoundError
from engram.services.auth.scope import LOCAL
from engram.services.corpus.collection_removal import RemovalService
from engram.storage import moved_collections
from engram.storage.auth import tenants
from engram.storage.corpus import collections
from engram.storage.database import Database, Writer
from engram.storage.maintenance import audit_log

log = structlog.get_logger(__name__)

COLLECTIONS = 100
"""Collections that are looked for at a time."""
REMOVAL_REASON = "tenant removed"
REMOVAL_STATUS = 200


class ClosingService:
    """Removes tenants with all that they have."""

    def __init__(self, database: Database, changed: Callable[[], None] = lambda: None) -> None:
        """``changed`` is called when a tenant was closed."""
        self._database = database
        self._changed = changed
        self._removal = RemovalService(database)

    def close(self, tenant: str, confirm: str) -> None:
        """Close the tenant: nobody can use it any more, and what it has is removed from now on.

        Args:
            confirm: the tenant's name once more, as there is no way back.

        Raises:
            InvalidRequestError: ``confirm`` is another name.
            ConflictError: it is the tenant of requests without a key.
            NotFoundError: there is no such tenant.
        """
        if confirm != tenant:
            raise InvalidRequestError(f"To remove tenant {tenant!r} with all that it has, confirm it by its name.")
        if tenant == LOCAL.tenant:
            raise ConflictError(f"Tenant {tenant!r} stays: it is that of requests without a key.")
        with tenancy.allow_all_tenants(), self._database.write() as writer:
            if not tenants.close(writer, tenant):
                raise NotFoundError(f"There is no tenant {tenant!r}.")
        self._changed()
        log.info("tenant closed", tenant=tenant)

    def run(self, should_stop: Callable[[], bool] = lambda: False) -> list[str]:
        """Remove what closed tenants have, and then these tenants; return the names of those that are gone.

        Raises:
            UnavailableError: Postgres is out of reach.
        """
        with tenancy.allow_all_tenants(), self._database.read() as reader:
            closed_tenants = tenants.list_closed(reader)
        return [tenant for tenant in closed_tenants if self._remove(tenant, should_stop)]

    def _remove(self, tenant: str, should_stop: Callable[[], bool]) -> bool:
        """Remove a closed tenant; return whether this call removed it, not another one at the same time."""
        with tenancy.allow_all_tenants():
            while not should_stop():
                with self._database.read() as reader:
                    page = collections.page(reader, None, COLLECTIONS, tenant)
                    if tenant not in tenants.list_closed(reader):
                        return False
                for collection in page:
                    if should_stop():
                        return False
                    with suppress(NotFoundError):  # deleted by a request at this moment
                        self._removal.remove(collection, should_stop)
                self._removal.run(should_stop, tenant)
                with self._database.write() as writer:
                    moved_collections.forget(writer, tenant)
                    if tenants.remove(writer, tenant):
                        _replace_audit_log(writer, tenant)
                        log.info("tenant removed", tenant=tenant)
                        return True
        return False


def _replace_audit_log(writer: Writer, tenant: str) -> None:
    """Remove the tenant's audit log, and record the tenant's removal in the operator's."""
    audit_log.forget(writer, tenant)
    act = audit_log.begin(
        writer,
        principal="engram",
        tenant=LOCAL.tenant,
        client=None,
        request_id=None,
        action=REMOVAL_REASON,
        target=tenant,
        body=None,
    )
    audit_log.end(writer, act, REMOVAL_STATUS)
