"""A database of its own for each module whose tests depend on what vector indexes hold.

An HNSW index finds nearly all it should, and how large it becomes differs a little from build to build: the same
vectors over and over, as other tests leave them, decide what "nearly" is and hide what a few dead entries take up.
"""

from collections.abc import Iterator

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from tests.support.databases import application_on


@pytest.fixture(scope="module")
def application(own: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    """An application on servers whose vector indexes hold what the module's tests put there."""
    with application_on(own, settings, application) as services:
        yield services
