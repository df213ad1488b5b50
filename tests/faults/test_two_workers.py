"""The same stream delivered to two worker processes at once, twice over and out of order: every verdict once."""

import random
from functools import partial

import redis

from engram.composition.container import Application, Servers
from engram.storage.corpus import collections
from tests.conftest import CURIE, Ingest
from tests.faults.conftest import Start, count_paused, pause_applying
from tests.support import state, twins, undo
from tests.support.constants import FEEDBACK_BATCH, GATHER_SECONDS, SWEEP_SECONDS
from tests.support.orphans import orphans
from tests.support.processes import eventually
from tests.support.threads import ThreadPoolExecutor

VERDICTS = 24


def test_one_worker_at_a_time_learns_a_collection_and_the_other_goes_on_with_others(
    application: Application, places: Servers, curie: str, ingest: Ingest
) -> None:
    other = f"{curie}-other"
    ingest(*CURIE, into=other)
    target, beside = (state.collection_id(application, name) for name in (curie, other))
    first, *rest = undo.stream(application, curie, 6, seed=31)
    elsewhere = undo.stream(application, other, 2, seed=31)
    with ThreadPoolExecutor(1) as pool:
        with pause_applying(places):
            applying = pool.submit(application.learning.learner.apply_unless_busy, target, [first])
            eventually(lambda: count_paused(application))
            assert application.learning.learner.apply_unless_busy(target, rest) is None
            assert application.learning.learner.apply_unless_busy(target, [first]) is None
            with application.database.write() as writer:
                assert collections.claim_learning(writer, beside)
        assert applying.result() == 1
    assert set(state.event_statuses(application, curie).values()) == {"applied", "pending"}
    assert application.learning.learner.apply_unless_busy(target, [first, *rest]) == len(rest)
    assert application.learning.learner.apply_unless_busy(beside, elsewhere) == len(elsewhere)
    undo.assert_verified(application, curie)


def _count_waiting(stream: "redis.Redis") -> int:
    """How many wait for messages at this moment."""
    return sum(client["cmd"] == "xreadgroup" and "b" in client["flags"] for client in stream.client_list())


def _is_applied(application: Application, name: str, event: int) -> bool:
    return state.event_statuses(application, name)[event] == "applied"


def test_two_workers_share_a_stream_that_stutters(
    application: Application, curie: str, start: Start, stream: "redis.Redis"
) -> None:
    twin = twins.create_twin(application, f"{curie}-twin")
    untouched = undo.stream(application, twin, VERDICTS, seed=31)
    twins.set_aside(application, twin)
    events = undo.stream(application, curie, VERDICTS, seed=31)
    stream.flushdb()
    target = state.collection_id(application, curie)
    by_stream = {
        FEEDBACK_BATCH: "3",
        GATHER_SECONDS: "0",
        SWEEP_SECONDS: "3600",  # else whoever sweeps first applies all that wait
    }
    workers = [start("worker", **by_stream) for _ in range(2)]
    for worker in workers:
        worker.ready()
    # A message goes to whoever waited longest: of two that come one after the other each worker has one.
    eventually(lambda: _count_waiting(stream) == len(workers))
    for event in events[: len(workers)]:
        assert application.stream.wake([(target, event)])
        eventually(partial(_is_applied, application, curie, event))
    draw = random.Random(5)
    for event in draw.sample(events * 2, 2 * VERDICTS):
        assert application.stream.wake([(target, event)])

    eventually(lambda: set(state.event_statuses(application, curie).values()) == {"applied"})
    eventually(lambda: stream.xlen("engram:feedback") == 0)
    for worker in workers:
        worker.terminate()
    assert [worker.wait_for_end() for worker in workers] == [0, 0]

    shares = [worker.output.count("feedback applied") for worker in workers]
    assert sum(shares) == VERDICTS
    assert all(shares), shares
    # What was delivered again was found applied, and not tried and refused by a primary key.
    assert not any("event not applied" in worker.output for worker in workers)
    assert [row["attempts"] for row in state.rows(application, curie, "feedback_event")] == [0] * VERDICTS
    assert orphans(application, curie) == {}
    undo.assert_verified(application, curie)
    twins.assert_as_without_fault(application, curie, events, twin, untouched)
