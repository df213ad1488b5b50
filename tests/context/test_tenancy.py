"""A statement runs only where something says whose rows it may see."""

from concurrent.futures import ThreadPoolExecutor
from contextvars import Context

import pytest

from engram.context import tenancy
from engram.context.tenancy import UnsetTenancyError


def outside() -> str | None:
    """What a thread sees that no block was handed to."""
    return Context().run(lambda: tenancy.get_visibility().tenant)


def test_unset_tenancy_raises() -> None:
    with pytest.raises(UnsetTenancyError, match=r"tenancy\.restrict_to or tenancy\.allow_all_tenants"):
        outside()


def test_blocks_set_it_and_their_ends_restore_it() -> None:
    seen: list[str | None] = []

    def record_tenants() -> None:
        with tenancy.restrict_to("one"):
            with tenancy.allow_all_tenants():
                seen.append(tenancy.get_visibility().tenant)
            seen.append(tenancy.get_visibility().tenant)
        with pytest.raises(UnsetTenancyError):
            tenancy.get_visibility()

    Context().run(record_tenants)
    assert seen == [None, "one"]


def test_a_thread_has_what_is_carried_to_it_and_nothing_else() -> None:
    with tenancy.restrict_to("one"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(tenancy.carry(lambda: tenancy.get_visibility().tenant)).result() == "one"
        with pytest.raises(UnsetTenancyError):
            pool.submit(tenancy.get_visibility).result()


def test_what_is_unset_cannot_be_carried() -> None:
    with pytest.raises(UnsetTenancyError):
        Context().run(tenancy.carry, tenancy.get_visibility)
