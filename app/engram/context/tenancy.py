"""Tenant on whose behalf the database is asked, set when a request is authenticated.

It is a second lock, under the scope that services go by: where row security is on, a connection that serves a
tenant sees no row of another's, whatever the statement says. Outside of requests nothing is restricted.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

_tenant: ContextVar[str | None] = ContextVar("tenant", default=None)


def current() -> str | None:
    """Return the tenant whose rows may be seen; None is every tenant."""
    return _tenant.get()


def restricted_to(tenant: str | None) -> AbstractContextManager[None]:
    """Restrict the block, and threads that it is handed to, to rows of this tenant; None restricts nothing."""
    return _set(tenant)


def unrestricted() -> AbstractContextManager[None]:
    """Let the block see the rows of every tenant."""
    return _set(None)


@contextmanager
def _set(tenant: str | None) -> Iterator[None]:
    before = _tenant.set(tenant)
    try:
        yield
    finally:
        _tenant.reset(before)
