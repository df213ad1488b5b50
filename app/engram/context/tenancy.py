"""Tenant on whose behalf the database is asked, set when a request is authenticated.

It is a second lock, under the scope that services go by: where row security is on, a connection that serves a
tenant sees no row of another's, whatever the statement says.

Nothing is visible by default. A block says whose rows its statements see, with ``restrict_to`` or
``allow_all_tenants``; outside such a block a statement raises. A new thread begins outside: ``carry`` hands it the
block.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_tenant: ContextVar[str | None] = ContextVar("tenant")


class UnsetTenancyError(RuntimeError):
    """A statement was about to run, and no block says whose rows it may see."""

    def __init__(self) -> None:
        super().__init__(
            "No tenancy is set: use the database in a block of tenancy.restrict_to or tenancy.allow_all_tenants."
        )


def get_current_tenant() -> str | None:
    """Return the tenant whose rows may be seen; None is every tenant.

    Raises:
        UnsetTenancyError: no block says it.
    """
    try:
        return _tenant.get()
    except LookupError:
        raise UnsetTenancyError from None


def restrict_to(tenant: str) -> AbstractContextManager[None]:
    """Restrict the block to rows of this tenant."""
    return _set(tenant)


def allow_all_tenants() -> AbstractContextManager[None]:
    """Let the block see the rows of every tenant."""
    return _set(None)


def carry(work: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return ``work`` as it runs in another thread: with the tenancy that is set now.

    Raises:
        UnsetTenancyError: none is set.
    """
    tenant = get_current_tenant()

    @wraps(work)
    def run(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        with _set(tenant):
            return work(*arguments, **options)

    return run


@contextmanager
def _set(tenant: str | None) -> Iterator[None]:
    before = _tenant.set(tenant)
    try:
        yield
    finally:
        _tenant.reset(before)
