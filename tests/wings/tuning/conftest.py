"""A collection whose questions are judged, and jobs that accept every adapter."""

from collections.abc import Callable

import pytest

from engram.composition.container import Application
from engram.services.auth.scope import Scope
from engram.storage.jobs.jobs import Job
from engram.wings.tuning.core.acceptance import AcceptanceRule
from engram.wings.tuning.core.learn_adapter import DEFAULT_OPTIONS, TuningOptions
from engram.wings.tuning.parts import tuning_of
from tests.support.tuned import PERMISSIVE, finish_jobs, judge_questions

Tune = Callable[..., Job]


@pytest.fixture
def judged(application: Application, curie: str) -> list[int]:
    """Events of the verdicts on ``JUDGED`` in the collection ``curie``."""
    return judge_questions(application, curie)


@pytest.fixture
def tune(application: Application) -> Tune:
    """Have a job learn a generation of a collection, by default one that is accepted whatever it is."""

    def run(scope: Scope, rule: AcceptanceRule = PERMISSIVE, options: TuningOptions = DEFAULT_OPTIONS) -> Job:
        job = tuning_of(application).tuning.request(scope)
        finish_jobs(application, rule, options)
        return application.jobs.jobs.job(scope, job)

    return run
