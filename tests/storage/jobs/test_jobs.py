"""Claims: one worker a job, a collection's jobs in turn, collections in turn, and leases that run out."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from engram.composition.container import Servers
from engram.storage.corpus import collections
from engram.storage.database import Database
from engram.storage.jobs import job_claims, jobs
from engram.storage.jobs.jobs import Job
from tests.support import state, threads
from tests.support.encoder import SOME_ENCODER

LEASE_SECONDS = 60.0


@pytest.fixture
def database(addresses: Servers) -> Iterator[Database]:
    database = Database(addresses.database_url, pool_size=3)
    yield database
    database.close()


@pytest.fixture
def lane(collection: str) -> str:
    """A lane in which no other test has jobs."""
    return f"lane-{collection}"


def open_job(database: Database, name: str, lane: str, **more: Any) -> UUID:
    """A job of the collection, which is made if it does not exist."""
    job = uuid4()
    with database.write() as writer:
        target = collections.open_for_writing(writer, name, SOME_ENCODER).collection.id
        assert jobs.add(writer, target, job, **({"kind": "any", "lane": lane, "payload": {"a": 1}} | more))
    return job


def claim_job(database: Database, *lanes: str, claimant: UUID | None = None, **only: int) -> Job | None:
    with database.write_once() as writer:
        return job_claims.claim(writer, claimant or uuid4(), lanes, LEASE_SECONDS, **only)


def end_job(database: Database, job: Job | None, status: str = "succeeded") -> UUID:
    assert job is not None
    with database.write() as writer:
        assert job_claims.close(writer, job, status)
    return job.id


def let_lease_lapse(database: Database, job: Job | None) -> Job:
    """The job, whose claimant has not been heard of for as long as its lease."""
    assert job is not None
    with database.write() as writer:
        assert writer.execute("UPDATE job SET due_at = now() WHERE id = %(job)s", {"job": job.id})
    return job


def find_job(database: Database, job: Job) -> Job:
    with database.read() as reader:
        stored = jobs.find(reader, job.collection_id, job.id)
    assert stored is not None
    return stored


class TestExclusiveClaims:
    def test_of_many_at_once_one_gets_it(self, database: Database, collection: str, lane: str) -> None:
        job = open_job(database, collection, lane)
        got: list[Job | None] = []
        state.together(*[lambda: got.append(claim_job(database, lane))] * 8)
        assert [each.id for each in got if each is not None] == [job]

    def test_a_job_that_is_being_claimed_is_skipped_and_not_waited_for(
        self, database: Database, collection: str, lane: str
    ) -> None:
        open_job(database, collection, lane)
        elsewhere = open_job(database, f"{collection}-other", lane)
        with database.write() as writer:
            first = job_claims.claim(writer, uuid4(), [lane], LEASE_SECONDS)
            second = claim_job(database, lane)
            assert claim_job(database, lane) is None
        assert first is not None
        assert second is not None
        assert (second.id, first.id != elsewhere) == (elsewhere, True)

    def test_a_claim_says_what_is_asked_for_and_by_whom_it_is_done(
        self, database: Database, collection: str, lane: str
    ) -> None:
        job, me = open_job(database, collection, lane, received=7, updated=2), uuid4()
        got = claim_job(database, lane, claimant=me)
        assert got is not None
        assert (got.id, got.collection, got.kind, got.payload) == (job, collection, "any", {"a": 1})
        assert (got.status, got.claimant, got.received, got.waiting) == ("running", me, 7, 5)

    def test_receiving_or_finished_job_cannot_be_claimed(
        self, database: Database, collection: str, lane: str
    ) -> None:
        job = open_job(database, collection, lane, receiving=True)
        assert claim_job(database, lane) is None
        with database.write() as writer:
            jobs.release(writer, collections.find(writer, collection).id, job)
        assert end_job(database, claim_job(database, lane)) == job
        assert claim_job(database, lane) is None

    def test_claims_can_be_of_one_collection_only(self, database: Database, collection: str, lane: str) -> None:
        open_job(database, collection, lane)
        other = open_job(database, f"{collection}-other", lane)
        with database.read() as reader:
            target = collections.find(reader, f"{collection}-other").id
        got = claim_job(database, lane, collection_id=target)
        assert got is not None
        assert got.id == other


class TestLaneOrder:
    def test_a_lane_of_a_collection_has_one_job_running(
        self, database: Database, collection: str, lane: str
    ) -> None:
        first, second = open_job(database, collection, lane), open_job(database, collection, lane)
        running = claim_job(database, lane)
        assert claim_job(database, lane) is None
        assert end_job(database, running) == first
        assert end_job(database, claim_job(database, lane)) == second

    def test_other_lanes_do_not_wait(self, database: Database, collection: str, lane: str) -> None:
        first, other = open_job(database, collection, lane), open_job(database, collection, f"{lane}-other")
        got = {job.id for job in (claim_job(database, lane, f"{lane}-other") for _ in range(2)) if job}
        assert got == {first, other}

    def test_one_that_waits_for_its_next_try_holds_up_what_came_after_it(
        self, database: Database, collection: str, lane: str
    ) -> None:
        first = open_job(database, collection, lane)
        open_job(database, collection, lane)
        running = claim_job(database, lane)
        assert running is not None
        with database.write() as writer:
            assert job_claims.put_back(writer, running, after_seconds=3600, error="later", tried=True)
        assert claim_job(database, lane) is None
        let_lease_lapse(database, running)
        again = claim_job(database, lane)
        assert again is not None
        assert (again.id, again.attempts, again.error) == (first, 1, "later")

    def test_returned_job_precedes_later_jobs(self, database: Database, collection: str, lane: str) -> None:
        first = open_job(database, collection, lane)
        open_job(database, collection, lane)
        running = claim_job(database, lane)
        assert running is not None
        with database.write() as writer:
            job_claims.put_back(writer, running)
        assert find_job(database, running).status == "queued"
        assert end_job(database, claim_job(database, lane)) == first

    def test_two_claims_that_do_not_see_each_other_take_one_job(
        self, database: Database, addresses: Servers, collection: str, lane: str
    ) -> None:
        """An earlier job becomes visible while a later one is being claimed."""
        early, got = uuid4(), []
        with database.write() as opening:
            target = collections.open_for_writing(opening, collection, SOME_ENCODER).collection.id
        with database.write() as claiming:
            with database.write() as opening:
                jobs.add(opening, target, early, kind="any", lane=lane, payload={})
                late = open_job(database, collection, lane)
                running = job_claims.claim(claiming, uuid4(), [lane], LEASE_SECONDS)
            second = threads.make_thread(lambda: got.append(claim_job(database, lane)))
            second.start()
            state.wait_for_lock(database)
        second.join()
        assert got == [None]
        assert end_job(database, running) == late
        assert end_job(database, claim_job(database, lane)) == early


class TestFairness:
    def test_a_collection_with_many_jobs_does_not_hold_back_anothers_one(
        self, database: Database, collection: str, lane: str
    ) -> None:
        many = [open_job(database, collection, lane) for _ in range(20)]
        one = open_job(database, f"{collection}-other", lane)
        order = [end_job(database, claim_job(database, lane)) for _ in range(21)]
        assert order == [many[0], one, *many[1:]]

    def test_collections_take_turns(self, database: Database, collection: str, lane: str) -> None:
        names = [f"{collection}-{n}" for n in range(3)]
        for name in names:
            for _ in range(3):
                open_job(database, name, lane)
        order = []
        for _ in range(9):
            job = claim_job(database, lane)
            end_job(database, job)
            order.append(job.collection if job else None)
        assert order == names * 3

    def test_collections_that_come_later_do_not_overtake_one_that_waits(
        self, database: Database, collection: str, lane: str
    ) -> None:
        first, second = (open_job(database, collection, lane) for _ in range(2))
        assert end_job(database, claim_job(database, lane)) == first
        late = open_job(database, f"{collection}-late", lane)
        assert end_job(database, claim_job(database, lane)) == second
        assert end_job(database, claim_job(database, lane)) == late


class TestLease:
    def test_renewed_lease_prevents_takeover(self, database: Database, collection: str, lane: str) -> None:
        open_job(database, collection, lane)
        running = let_lease_lapse(database, claim_job(database, lane))
        with database.write_once() as writer:
            assert job_claims.keep(writer, running, LEASE_SECONDS) is False
        assert claim_job(database, lane) is None

    def test_one_that_ran_out_is_taken_over_and_counts_as_a_try(
        self, database: Database, collection: str, lane: str
    ) -> None:
        open_job(database, collection, lane)
        running = let_lease_lapse(database, claim_job(database, lane))
        heir = claim_job(database, lane)
        assert heir is not None
        assert (heir.id, heir.attempts, heir.error) == (running.id, 1, "Its worker was lost.")

    def test_overtaken_worker_cannot_write(self, database: Database, collection: str, lane: str) -> None:
        open_job(database, collection, lane, received=5)
        slow = let_lease_lapse(database, claim_job(database, lane))
        heir = claim_job(database, lane)
        assert heir is not None
        with database.write() as writer:
            assert job_claims.keep(writer, slow, LEASE_SECONDS) is None
            assert job_claims.advance(writer, slow, created=1) is None
            assert job_claims.report(writer, slow, received=1, updated=1) is None
            assert not job_claims.put_back(writer, slow)
            assert not job_claims.close(writer, slow, "succeeded")
            assert job_claims.attempts(writer, slow) is None
        assert find_job(database, heir) == heir

    def test_a_claimant_that_asks_anew_gets_what_it_has_and_loses_no_try(
        self, database: Database, collection: str, lane: str
    ) -> None:
        job, me = open_job(database, collection, lane), uuid4()
        claim_job(database, lane, claimant=me)
        again = claim_job(database, lane, claimant=me)
        assert again is not None
        assert (again.id, again.attempts, again.error) == (job, 0, None)


class TestTryCounts:
    def test_coming_forward_forgets_failed_tries(self, database: Database, collection: str, lane: str) -> None:
        open_job(database, collection, lane, received=10)
        running = let_lease_lapse(database, claim_job(database, lane))
        heir = claim_job(database, lane)
        assert heir is not None
        with database.write() as writer:
            assert job_claims.advance(writer, heir, created=3, unchanged=1, position=17) is False
        now = find_job(database, running)
        assert (now.created, now.unchanged, now.waiting, now.position) == (3, 1, 6, 17)
        assert (now.attempts, now.error) == (0, None)

    def test_received_count_grows_with_progress(self, database: Database, collection: str, lane: str) -> None:
        open_job(database, collection, lane, received=2, updated=1)
        running = claim_job(database, lane)
        assert running is not None
        with database.write() as writer:
            job_claims.advance(writer, running, updated=3)
        now = find_job(database, running)
        assert (now.received, now.updated, now.waiting) == (4, 4, 0)

    def test_a_report_of_what_is_not_kept_forgets_no_failed_try(
        self, database: Database, collection: str, lane: str
    ) -> None:
        open_job(database, collection, lane)
        let_lease_lapse(database, claim_job(database, lane))
        heir = claim_job(database, lane)
        assert heir is not None
        with database.write() as writer:
            assert job_claims.report(writer, heir, received=9, updated=4, stage="terms", keep_result=False) is False
        now = find_job(database, heir)
        assert (now.stage, now.received, now.waiting, now.attempts) == ("terms", 9, 5, 1)


class TestCancellation:
    def test_one_that_waits_ends_at_once_and_holds_nothing_up(
        self, database: Database, collection: str, lane: str
    ) -> None:
        first, second = open_job(database, collection, lane), open_job(database, collection, lane)
        with database.write() as writer:
            target = collections.find(writer, collection).id
            done = jobs.request_cancel(writer, target, first)
        assert done is not None
        assert (done.status, done.finished_at is not None) == ("cancelled", True)
        assert end_job(database, claim_job(database, lane)) == second

    def test_one_that_runs_hears_of_it_with_its_next_word(
        self, database: Database, collection: str, lane: str
    ) -> None:
        open_job(database, collection, lane)
        running = claim_job(database, lane)
        assert running is not None
        with database.write() as writer:
            asked = jobs.request_cancel(writer, running.collection_id, running.id)
        assert asked is not None
        assert (asked.status, asked.finished_at) == ("running", None)
        with database.write() as writer:
            assert job_claims.keep(writer, running, LEASE_SECONDS) is True
            assert job_claims.advance(writer, running) is True
            assert job_claims.report(writer, running, received=0, updated=0) is True
            again = jobs.request_cancel(writer, running.collection_id, running.id)
            assert again is not None
            assert again.cancel_requested_at == asked.cancel_requested_at

    def test_one_that_is_over_stays_as_it_is(self, database: Database, collection: str, lane: str) -> None:
        open_job(database, collection, lane)
        running = claim_job(database, lane)
        end_job(database, running)
        assert running is not None
        with database.write() as writer:
            done = jobs.request_cancel(writer, running.collection_id, running.id)
        assert done is not None
        assert (done.status, done.cancel_requested_at) == ("succeeded", None)


class TestOpenJobs:
    def test_of_a_single_kind_one_is_open(self, database: Database, collection: str, lane: str) -> None:
        open_job(database, collection, lane, kind="once", single=True)
        with database.write() as writer:
            target = collections.find(writer, collection).id
            again = {"kind": "once", "lane": lane, "single": True, "payload": {}}
            assert not jobs.add(writer, target, uuid4(), **again)
            assert jobs.add(writer, target, uuid4(), **(again | {"kind": "twice"}))
        end_job(database, claim_job(database, lane))
        with database.write() as writer:
            assert jobs.add(writer, target, uuid4(), **again)


class TestJobPages:
    def test_pages_go_from_the_latest_to_the_first(self, database: Database, collection: str, lane: str) -> None:
        ids = [open_job(database, collection, lane) for _ in range(5)]
        open_job(database, f"{collection}-other", lane)
        with database.read() as reader:
            target = collections.find(reader, collection).id
            first = jobs.page(reader, target, None, 2)
            second = jobs.page(reader, target, first[-1].number, 9)
        assert [job.id for job in (*first, *second)] == ids[::-1]

    def test_the_place_in_the_queue_is_how_many_of_the_collection_come_first(
        self, database: Database, collection: str, lane: str
    ) -> None:
        ids = [open_job(database, collection, lane) for _ in range(3)]
        open_job(database, collection, f"{lane}-other")
        running = claim_job(database, lane)
        assert running is not None
        with database.read() as reader:
            assert jobs.count_ahead(reader, running.collection_id, ids) == {ids[1]: 1, ids[2]: 2}


class TestWaitingOthers:
    def test_one_that_could_begin_in_the_lane_waits(self, database: Database, collection: str, lane: str) -> None:
        open_job(database, collection, lane)
        job = claim_job(database, lane)
        assert job is not None

        def others_wait() -> bool:
            with database.read() as reader:
                return job_claims.has_waiting_others(reader, job)

        other = f"{collection}-other"
        open_job(database, collection, lane)  # of its own collection, which does not count
        open_job(database, other, f"{lane}-later")
        assert claim_job(database, f"{lane}-later") is not None
        assert not others_wait()
        open_job(database, other, lane)  # beside the one that runs in another lane
        assert others_wait()
        assert claim_job(database, lane) is not None
        open_job(database, other, lane)  # behind one that runs in this lane
        assert not others_wait()
