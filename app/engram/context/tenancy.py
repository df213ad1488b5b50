"""For which tenant the database is asked: set when a request is known to be somebody's, heeded by every connection.

It is a second lock, under the scope that services go by: where row security is on, a connection that serves a
tenant sees no row of another's, whatever the statement says. Outside of requests no tenant is set, and all is seen.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_tenant: ContextVar[str | None] = ContextVar("tenant", default=None)


def current() -> str | None:
    """Whose rows may be seen; None: everybody's."""
    return _tenant.get()


@contextmanager
def of(tenant: str | None) -> Iterator[None]:
    """What is done in the block, in threads that it is handed to as well, is done for this tenant."""
    before = _tenant.set(tenant)
    try:
        yield
    finally:
        _tenant.reset(before)
