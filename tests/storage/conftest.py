"""Connections and databases of their own for tests that look from outside, or that change or lose the schema."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy.engine import make_url

from engram.composition.container import Application, Servers
from tests.support import evolving, state, twins, undo
from tests.support.databases import new_database


@pytest.fixture
def bystander(addresses: Servers) -> Iterator["psycopg.Connection[Any]"]:
    """A connection that belongs to none of ours."""
    address = make_url(addresses.database_url).set(drivername="postgresql")
    with psycopg.connect(address.render_as_string(hide_password=False), autocommit=True) as connection:
        yield connection


@pytest.fixture
def empty_database(addresses: Servers) -> Iterator[str]:
    """The address of a new database on the embedded server, dropped afterwards."""
    with new_database(addresses.database_url) as url:
        yield url


@dataclass(frozen=True, slots=True)
class TaughtCollection:
    """A collection that verdicts of two judges taught all there is to teach, and one that others taught the same.

    Attributes:
        id, other: of the collections; tests read them and change nothing.
        events: of the first, applied in this order.
    """

    name: str
    id: int
    other: int
    events: list[int]


@pytest.fixture(scope="session")
def taught(application: Application) -> TaughtCollection:
    """Five passages and sixteen verdicts each; keys evolved half-way."""
    name = f"taught-{uuid4().hex}"
    applied = {}
    for one in (name, f"{name}-other"):
        twins.create_twin(application, one)
        applied[one] = undo.stream(application, one, 16, seed=3)
        undo.apply(application, one, applied[one][:8], 8)
        evolving.evolve(application, application.auth.access.scope(one))
        undo.apply(application, one, applied[one][8:], 8)
    return TaughtCollection(
        name,
        state.collection_id(application, name),
        state.collection_id(application, f"{name}-other"),
        applied[name],
    )
