"""A collection whose questions are judged, and jobs that accept every adapter."""

import hashlib
import pickle
from collections.abc import Callable
from dataclasses import replace

import pytest

from engram.composition.container import Application
from engram.services.auth.scope import Scope
from engram.storage.jobs.jobs import Job
from engram.wings.tuning.core.acceptance import AcceptanceRule, Trial
from engram.wings.tuning.core.learn_adapter import DEFAULT_OPTIONS, TuningOptions
from engram.wings.tuning.parts import tuning_of
from engram.wings.tuning.services import tuning_job
from engram.wings.tuning.services.learning_process import TrainingInput, learn_in_subprocess
from tests.support.tuned import PERMISSIVE, finish_jobs, judge_questions

Tune = Callable[..., Job]


@pytest.fixture(scope="module")
def learned() -> dict[bytes, Trial]:
    """What was learned, by the digest of what it was learned from."""
    return {}


@pytest.fixture(autouse=True)
def learning_once(monkeypatch: pytest.MonkeyPatch, learned: dict[bytes, Trial]) -> None:
    """Learn once from the same samples: most tests judge the same questions, and are of what follows."""

    def learn(training: TrainingInput, should_stop: Callable[[], bool]) -> Trial:
        samples = training.samples.sort()
        content = replace(samples, keys=[""] * len(samples.keys)), training.probes, training.options, training.rule
        digest = hashlib.sha256(pickle.dumps(content)).digest()
        if digest not in learned or should_stop():
            learned[digest] = learn_in_subprocess(training, should_stop)
        return learned[digest]

    monkeypatch.setattr(tuning_job, "learn_in_subprocess", learn)


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
