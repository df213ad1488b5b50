"""Copies of a collection whose vectors are of another encoder than the process has."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context.errors import EmbeddingSpaceMismatchError
from engram.wings.history.parts import history_of
from engram.wings.history.services.past_copy import PastCopy
from tests.services.encoders.test_encoder import RIVER, add_pending_verdict, ask, open_job
from tests.support import state, undo
from tests.support.databases import application_on
from tests.support.encoder import RotatedEncoder
from tests.support.jobs import make_due
from tests.support.twins import create_twin


@pytest.fixture(scope="module")
def application(own: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    """The first of two."""
    with application_on(own, settings, application) as services:
        yield services


@pytest.fixture(scope="module")
def other(own: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    """The second, with another encoder."""
    with application_on(own, settings, application, RotatedEncoder(application.models.embedder)) as services:
        yield services


@pytest.fixture
def held(application: Application, collection: str) -> str:
    """A collection of the first."""
    return create_twin(application, collection)


def test_copy_keeps_the_encoder_of_its_source(application: Application, other: Application, held: str) -> None:
    scope = application.auth.access.scope(held)
    application.learning.learner.apply(scope.collection.id, [add_pending_verdict(application, held)])
    job_id = history_of(other).past.request(scope, datetime.now(UTC), f"{held}-copy")
    assert other.jobs.runner.run_ready() == 1
    job = other.jobs.jobs.job(scope, job_id)
    assert job.status == "succeeded", job.error

    assert application.auth.access.scope(f"{held}-copy").collection.encoder == application.models.encoder.id
    assert ask(application, f"{held}-copy")
    with pytest.raises(EmbeddingSpaceMismatchError):
        ask(other, f"{held}-copy")


def test_a_copy_that_needs_text_embedded_waits(application: Application, other: Application, held: str) -> None:
    scope = application.auth.access.scope(held)
    event = add_pending_verdict(application, held, RIVER)
    application.learning.learner.apply(scope.collection.id, [event])
    then = datetime.now(UTC)
    application.learning.revocation.revoke(scope, event)  # the last that brought this unit, which goes with it
    history_of(other).past.request(scope, then, f"{held}-copy")

    assert other.jobs.runner.run_ready() == 0
    assert "holds vectors of all-MiniLM-L6-v2" in open_job(application, held)["error"]
    make_due(application)
    assert application.jobs.runner.run_ready() == 1
    (made,) = [row["result"] for row in state.rows(application, held, "job") if row["kind"] == "replay"]
    assert PastCopy(**made).events_restored == 1
    undo.assert_verified(application, f"{held}-copy")
