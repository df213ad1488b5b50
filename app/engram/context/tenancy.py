"""Choose whose rows the database shows: those of a request's tenant, for the readers that its caller is.

It is a second lock, under the scope that services go by: where row security is on, a connection that serves a
tenant sees no row of another's, whatever the statement says. The readers of passages are bound by it alone
(``engram.migrations.rules``).

Nothing is visible by default. A block says whose rows its statements see, with ``restrict_to`` or
``allow_all_tenants``; outside such a block a statement raises. A new thread begins outside: ``carry`` hands it the
block.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ReaderNames:
    """The names of a caller among the readers of passages.

    Attributes:
        names: as passages name their readers, ``user:ana`` or ``group:hr``.
        administers: collections of which it sees every passage.
    """

    names: tuple[str, ...] = ()
    administers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Visibility:
    """Rows that statements see.

    Attributes:
        tenant: whose collections; None: every tenant's.
        readers: who reads; None: passages are seen whoever their readers are.
        reader_sets: by database, what ``readers`` were found to see, and when: a block looks it up once a second.
    """

    tenant: str | None
    readers: ReaderNames | None = None
    reader_sets: dict[object, tuple[str, float]] = field(default_factory=dict, compare=False, repr=False)


_visibility: ContextVar[Visibility] = ContextVar("visibility")


class UnsetTenancyError(RuntimeError):
    """A statement was about to run, and no block says whose rows it may see."""

    def __init__(self) -> None:
        super().__init__(
            "No tenancy is set: use the database in a block of tenancy.restrict_to or tenancy.allow_all_tenants."
        )


def get_visibility() -> Visibility:
    """Return what may be seen.

    Raises:
        UnsetTenancyError: no block says it.
    """
    try:
        return _visibility.get()
    except LookupError:
        raise UnsetTenancyError from None


def restrict_to(tenant: str, readers: ReaderNames | None = None) -> AbstractContextManager[None]:
    """Restrict the block to rows of this tenant; of its passages, to those that ``readers`` may see."""
    return _set(Visibility(tenant, readers))


def allow_all_tenants() -> AbstractContextManager[None]:
    """Let the block see the rows of every tenant."""
    return _set(Visibility(None))


def allow_all_readers() -> AbstractContextManager[None]:
    """Let the block see passages whoever their readers are: for what shows nothing of them to the caller."""
    return _set(replace(get_visibility(), readers=None))


def become(visibility: Visibility) -> None:
    """Have the rest of the present task see this, and nothing else."""
    _visibility.set(visibility)


def carry(work: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return ``work`` as it runs in another thread: with the tenancy that is set now.

    Raises:
        UnsetTenancyError: none is set.
    """
    visibility = get_visibility()

    @wraps(work)
    def run(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        with _set(visibility):
            return work(*arguments, **options)

    return run


@contextmanager
def _set(visibility: Visibility) -> Iterator[None]:
    before = _visibility.set(visibility)
    try:
        yield
    finally:
        _visibility.reset(before)
