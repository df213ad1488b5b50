"""Random logs, applied by the worker on Postgres, and replayed: both come to the same bytes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engram.composition.container import Application
from engram.core.learning import state_replay as core
from engram.core.learning.state_replay import ReplayStep
from engram.services.feedback_log import log_replay
from engram.storage.database import Reader
from engram.storage.feedback_log import replay_history, stored_outcomes
from engram.storage.learning import learned_weights, question_supports
from engram.wings.published.core.memory_replay import replay_memories
from engram.wings.published.services import memory_rewriting
from engram.wings.published.storage import memory_history, sentence_memories
from tests.support import state, undo
from tests.support.logs import bits

JUDGES = ("careful", "careless", "strict")
DAYS = ("2026-05-01", "2026-05-02")
WHOLE_PAGE = 1_000
"""More than there are of anything."""
FEW_EXAMPLES = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)


@dataclass(frozen=True)
class LoggedOpinion:
    """A verdict: question, judge, day and sentences by number."""

    question: int
    judge: str
    day: str
    supporting: list[int]
    rejected: list[int]
    examined: float
    partial: bool
    retrieval_success: bool | None
    confidence: float
    passage: str | None


@st.composite
def draw_opinion(draw: st.DrawFn) -> LoggedOpinion:
    named = draw(st.lists(st.integers(0, 8), max_size=4, unique=True))
    cut = draw(st.integers(0, len(named)))
    return LoggedOpinion(
        question=draw(st.integers(0, len(undo.QUESTIONS) - 1)),
        judge=draw(st.sampled_from(JUDGES)),
        day=draw(st.sampled_from(DAYS)),
        supporting=named[:cut],
        rejected=named[cut:],
        examined=draw(st.sampled_from([1.0, 0.4, 0.05])),
        partial=draw(st.booleans()),
        retrieval_success=draw(st.sampled_from([None, True, False])),
        confidence=draw(st.sampled_from([1.0, 0.5, 0.01])),
        passage=draw(st.sampled_from([None, None, "curie", "warsaw"])),
    )


@pytest.fixture
def judged(application: Application, curie: str) -> str:
    """A collection some of whose judges count less than others."""
    application.learning.judges.set(
        application.auth.access.scope(curie), "careless", share=0.7, contested=0.05, weight_verdicts=2
    )
    application.learning.judges.set(
        application.auth.access.scope(curie), "strict", negative=0.2, share=0.9, contested=0.3
    )
    return curie


def apply_log(application: Application, collection: str, log: Iterable[LoggedOpinion], batch: int) -> list[int]:
    """The events of a log, from nothing, applied by the worker's service in batches."""
    application.revocation.learning_reset.reset(application.auth.access.scope(collection))
    everything = state.list_sentence_ids(application, collection)
    passages = list(state.passages(application, collection).values())
    asked: list[UUID] = [
        state.add_episode(
            application,
            collection,
            question,
            everything[number : number + 4],
            time,
            ranked=passages,
            answer_features=state.draw_answer(number),
        )
        for number, (question, time) in enumerate(undo.QUESTIONS)
    ]
    events = []
    for one in log:
        receipt = state.judge(
            application,
            collection,
            asked[one.question],
            [everything[at] for at in one.supporting],
            rejected=[everything[at] for at in one.rejected],
            examined=one.examined,
            judge=one.judge,
            partial=one.partial,
            retrieval_success=one.retrieval_success,
            confidence=one.confidence,
            supporting_passages=(one.passage,) if one.passage else (),
        )
        events.append(receipt.event.id)
        state.on_day(application, collection, receipt.event.id, one.day)
    undo.apply(application, collection, events, batch)
    return events


def drop_recorded_moves(steps: Iterable[ReplayStep]) -> list[ReplayStep]:
    """Steps of which nothing is recorded but what the verdict said and by which noises."""
    nothing = {"gain": 0.0, "residual": 0.0, "perplexity_before": 1.0, "perplexity_after": 1.0}
    return [replace(step, recorded=replace(step.recorded, **nothing)) for step in steps]


def list_corrections(replayed: Iterable[Any]) -> set[Any]:
    return {bits(row) for done in replayed for row in done.corrected}


def assert_replayed(application: Application, collection: str) -> None:
    """Hold every learned row against a replay of the log that knows none of them."""
    target = state.collection_id(application, collection)
    with application.database.snapshot() as reader:
        sentences = sentence_memories.list_judged_sentences(reader, target, 0, WHOLE_PAGE)
        steps = drop_recorded_moves(memory_rewriting.read_steps(reader, target, sentences))
        memories = list(replay_memories(memory_history.load_bases(reader, target, sentences), steps))
        stored = sentence_memories.load_memories(reader, target, sentences)
        assert [bits(done.state) for done in memories] == [bits(memory) for memory in stored]

        questions = stored_outcomes.question_ids(reader, target, 0, WHOLE_PAGE)
        supports = list(
            core.replay_supports(drop_recorded_moves(log_replay.support_steps(reader, target, questions)))
        )
        known = question_supports.load_supports(reader, target, questions)
        assert [bits(done.state) for done in supports] == [bits(support) for support in known]

        audit = {
            bits(row) for event in stored_outcomes.events(reader, target, 0, WHOLE_PAGE) for row in event.audit
        }
        assert audit == list_corrections(memories) | list_corrections(supports)
        _assert_weights(reader, target, application, log_replay.find_opposing_events(reader, target, questions))


def _assert_weights(reader: Reader, target: int, application: Application, contested: set[int]) -> None:
    for believed in application.models.priors.priors:
        learned = learned_weights.find(reader, target, believed)
        assert bits(learned) == bits(log_replay.belief(reader, target, believed))
        terms = replay_history.terms(reader, target, believed, 0, WHOLE_PAGE)
        assert {term.event_id for term in terms if term.contested} == contested & {term.event_id for term in terms}
        assert (0 if learned is None else learned.events) == sum(term.counted for term in terms)


@FEW_EXAMPLES
@given(
    log=st.lists(draw_opinion(), min_size=1, max_size=10),
    batch=st.sampled_from([1, 3, 10]),
    revoked=st.sets(st.integers(0, 9)),
)
def test_the_worker_and_a_replay_come_to_the_same_bytes(
    application: Application, judged: str, log: list[LoggedOpinion], batch: int, revoked: set[int]
) -> None:
    events = apply_log(application, judged, log, batch)
    assert_replayed(application, judged)

    gone = [event for place, event in enumerate(events) if place in revoked]
    for event in gone:
        application.learning.revocation.revoke(application.auth.access.scope(judged), event)
    assert_replayed(application, judged)
    after = undo.list_learned(application, judged)

    undo.forgotten(application, judged)
    undo.apply(application, judged, [event for event in events if event not in gone], batch)
    undo.assert_same(after, undo.list_learned(application, judged))
