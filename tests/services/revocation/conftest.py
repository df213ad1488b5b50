"""Fixtures of tests that take learned state back."""

import pytest

from engram.composition.container import Application
from tests.support import evolving, undo


@pytest.fixture
def taught(application: Application, curie: str) -> str:
    """A collection that learned at every scope, with evidence taken in and waiting."""
    events = undo.stream(application, curie, 16, seed=41)
    undo.apply(application, curie, events[:10], 10)
    evolving.evolve(application, application.auth.access.scope(curie))
    undo.apply(application, curie, events[10:], 3)
    return curie
