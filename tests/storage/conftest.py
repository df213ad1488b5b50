"""Connections and databases of their own for tests that look from outside, or that change or lose the schema."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy.engine import make_url

from app.composition import Servers
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
