"""Jobs sent under an Idempotency-Key."""

from uuid import UUID

import pytest

from engram.composition.container import Application
from engram.context.errors import IdempotencyConflictError
from tests.conftest import CURIE
from tests.support import state


def test_the_same_body_again_is_the_same_job(application: Application, collection: str) -> None:
    first = state.stage_passages(application, collection, CURIE[0], key="once")
    application.jobs.runner.run_ready()

    assert state.stage_passages(application, collection, CURIE[0], key="once") == first
    assert len(state.rows(application, collection, "job")) == 1


def test_another_body_is_refused_and_discarded(application: Application, collection: str) -> None:
    state.stage_passages(application, collection, CURIE[0], key="once")
    with pytest.raises(IdempotencyConflictError, match="once"):
        state.stage_passages(application, collection, CURIE[1], key="once")

    assert len(state.rows(application, collection, "job")) == 1


def test_senders_at_once_make_one_job(application: Application, collection: str) -> None:
    made: list[UUID] = []
    state.together(*[lambda: made.append(state.stage_passages(application, collection, CURIE[0], key="once"))] * 6)

    assert len(made) == 6
    assert len(set(made)) == 1
    assert application.jobs.jobs.job(application.auth.access.scope(collection), made[0]).received == 1
    assert len(state.rows(application, collection, "job")) == 1
