"""Judged questions for tuning, and jobs that accept every adapter."""

from collections.abc import Sequence

from engram.composition.container import Application
from engram.wings.tuning.core.acceptance import AcceptanceRule
from engram.wings.tuning.core.learn_adapter import DEFAULT_OPTIONS, TuningOptions
from engram.wings.tuning.services.tuning_job import TuningJob
from tests.support import state
from tests.support.jobs import run_again, runner

PERMISSIVE = AcceptanceRule(least_needs=0, z=-1e9, most_loss=1e9, least_overlap=0.0, without_each_judge=False)
"""Accepts every adapter: what stores and serves it is of interest here."""
JUDGED = (
    ("Who found element 84?", "curie"),
    ("Which town lies on the river?", "warsaw"),
    ("Where does the water go?", "vistula"),
    ("What shines in the dark?", "polonium"),
    ("Which city has a bay?", "tokyo"),
    ("Who was born in 1867?", "curie"),
)


def judge_questions(
    application: Application, name: str, questions: Sequence[tuple[str, str]] = JUDGED, judge: str = "ana"
) -> list[int]:
    """Have a judge support the first sentence of a passage for each question; the events."""
    events = []
    for question, passage in questions:
        sentences = list(state.sentences(application, name, passage).values())
        query = state.add_episode(application, name, question, sentences[:1])
        receipt = state.judge(application, name, query, sentences[:1], judge=judge)
        events.append(receipt.event.id)
    application.learning.learner.apply(state.collection_id(application, name), events)
    return events


def finish_jobs(
    application: Application, rule: AcceptanceRule = PERMISSIVE, options: TuningOptions = DEFAULT_OPTIONS
) -> None:
    """Do every job that waits."""
    handler = TuningJob(application.database, lambda: application.models.encoder, options, rule)
    run_again(application, runner(application, tune=handler))
