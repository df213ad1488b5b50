"""A past state is an ordinary collection: it serves, learns, goes. Making one holds nobody up, or fails whole."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from engram.composition.container import Application, Servers
from engram.context.errors import (
    ConflictError,
    IdempotencyConflictError,
    InvalidRequestError,
    NotFoundError,
    UnavailableError,
)
from engram.core.learning.logged_verdict import Expansion
from engram.services.jobs.work import Work
from engram.services.question.query import Query
from engram.storage.corpus.collections import Collection
from engram.storage.database import Writer
from engram.wings.history.parts import history_of
from engram.wings.published.parts import published_of
from tests.conftest import CURIE, Ingest
from tests.support import state, undo
from tests.support.databases import application_on
from tests.support.jobs import run_again
from tests.support.past import (
    BERLIN,
    assert_nothing_left,
    corpus,
    list_learned,
    list_meant,
    now,
    rebuild_past,
    rows_of_collection,
)


class TestServedCopies:
    @pytest.mark.parametrize("exact", [True, False], ids=["exact", "HNSW"])
    def test_it_answers_as_the_live_collection(
        self, application: Application, addresses: Servers, taught: str, exact: bool
    ) -> None:
        past = rebuild_past(application, taught, now(application))
        with application_on(addresses, application.settings, application) as services:
            services.models.limits = replace(application.models.limits, exact=exact)
            self.compare(services, taught, past.collection)

    def compare(self, application: Application, taught: str, past: str) -> None:
        for question in ("Who was born in Warsaw?", "What happened in 1898?", "Where does the river flow?"):
            for memory in ("read", "off"):
                asked = Query(text=question, scope=application.auth.access.scope(taught), memory=memory)
                one = application.answers.question.answer(asked)
                other = application.answers.question.answer(
                    replace(asked, scope=application.auth.access.scope(past))
                )
                assert other.passages == one.passages
                assert one.passages

    def test_it_is_marked_and_serves_without_memory_until_switched(
        self, application: Application, taught: str
    ) -> None:
        until = now(application)
        past = rebuild_past(application, taught, until)
        assert past.collection == f"{taught}-at-{until.astimezone(UTC):%Y%m%dT%H%M%SZ}"
        row = rows_of_collection(application, past.collection)[0]
        assert (row["serving"], row["experiment"], row["exploration"]) == ("shadow", None, None)
        marked = application.auth.access.scope(past.collection).collection.past or {}
        assert (marked["of"], marked["until"]) == (taught, until.isoformat())
        assert application.auth.access.scope(taught).collection.past is None
        application.corpus.collection_settings.configure(
            application.auth.access.scope(past.collection), {"serving": "live"}
        )
        assert rows_of_collection(application, past.collection)[0]["serving"] == "live"

    def test_it_learns_on_and_can_be_deleted_beside_the_live_one(
        self, application: Application, taught: str, ingest: Ingest
    ) -> None:
        before, graph = list_learned(application, taught), corpus(application, taught)
        past = rebuild_past(application, taught, now(application))
        undo.apply(application, past.collection, undo.stream(application, past.collection, 8, seed=6), 3)
        published_of(application).evolve.evolve(application.auth.access.scope(past.collection))
        application.learning.revocation.revoke(
            application.auth.access.scope(past.collection),
            state.list_applied_order(application, past.collection)[0],
        )
        ingest(BERLIN, CURIE[0] | {"text": "Marie Curie died in 1934."}, into=past.collection)
        undo.assert_verified(application, past.collection)
        assert state.counts(application, past.collection) == state.true_counts(application, past.collection)
        undo.assert_same(list_learned(application, taught), before)
        application.corpus.ingest.delete_collection(application.auth.access.scope(past.collection))
        undo.assert_same(list_learned(application, taught), before)
        undo.assert_same(corpus(application, taught), graph)
        assert_nothing_left(application)

    def test_a_copy_can_be_copied(self, application: Application, taught: str) -> None:
        until = now(application)
        past = rebuild_past(application, taught, until)
        again = rebuild_past(application, past.collection, until, into=f"{taught}-again")
        undo.assert_verified(application, again.collection)
        undo.assert_same(list_learned(application, again.collection), list_learned(application, taught))
        undo.assert_same(corpus(application, again.collection), corpus(application, taught))


class TestCopying:
    def test_others_learn_revoke_ask_and_ingest_meanwhile(
        self, application: Application, taught: str, ingest: Ingest
    ) -> None:
        events = undo.stream(application, taught, 40, seed=12)
        then, until = list_learned(application, taught), now(application)
        stages: list[str] = []

        def change_meanwhile(stage: str, _done: int, _of: int) -> None:
            if stage in stages:
                return
            stages.append(stage)
            some, events[:] = events[:4], events[4:]
            undo.apply(application, taught, some, 2)
            application.learning.revocation.revoke(application.auth.access.scope(taught), some[0])
            application.learning.revocation.revoke(
                application.auth.access.scope(taught), state.list_applied_order(application, taught)[0]
            )
            published_of(application).evolve.evolve(application.auth.access.scope(taught))
            application.answers.question.answer(
                Query(text="Who was born in Warsaw?", scope=application.auth.access.scope(taught))
            )
            ingest(BERLIN | {"id": f"new-{stage}"})
            assert name not in state.names(application)

        name = f"{taught}-past"
        past = history_of(application).past.make(
            application.auth.access.scope(taught).collection, until, name, change_meanwhile
        )
        assert stages == [
            "passages", "entities", "terms", "verdicts", "statistics", "questions", "memories", "keys",
            "statistics of states",
        ]  # fmt: skip
        undo.assert_verified(application, name)
        undo.assert_verified(application, taught)
        undo.assert_same(list_learned(application, name), then)
        assert past.passages == len(CURIE)

    @pytest.mark.parametrize("stage", ["passages", "terms", "verdicts", "questions", "keys"])
    def test_failed_past_state_leaves_nothing(self, application: Application, taught: str, stage: str) -> None:
        def fail(now_at: str, done: int, _of: int) -> None:
            if now_at == stage and done:
                raise RuntimeError("the machine is gone")

        name = f"{taught}-past"
        with pytest.raises(RuntimeError, match="the machine is gone"):
            history_of(application).past.make(
                application.auth.access.scope(taught).collection, now(application), name, fail
            )
        assert name not in state.names(application)
        assert_nothing_left(application)
        assert rebuild_past(application, taught, now(application), into=name).events == 16

    def test_past_state_job_stops_on_request(self, application: Application, taught: str) -> None:
        stages: list[str] = []
        with pytest.raises(UnavailableError):
            history_of(application).past.make(
                application.auth.access.scope(taught).collection,
                now(application),
                f"{taught}-past",
                report=lambda stage, *_: stages.append(stage),
                should_stop=lambda: "verdicts" in stages,
            )
        assert "memories" not in stages
        assert f"{taught}-past" not in state.names(application)
        assert_nothing_left(application)

    def test_units_revoked_meanwhile_are_embedded_before_the_copy(
        self, application: Application, taught: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        until, then = now(application), list_meant(application, taught)
        for event in state.list_applied_order(application, taught):
            application.learning.revocation.revoke(application.auth.access.scope(taught), event)
        embedded: list[int] = []
        plain = published_of(application).attribution.embed_units

        def embed_and_record(collection: Collection, expansions: Mapping[bytes, Expansion]) -> Any:
            with application.database.read() as reader:
                embedded.append(
                    reader.scalar(
                        """
                        SELECT count(*) FROM pg_stat_activity
                        WHERE state LIKE 'idle in transaction%%' AND datname = current_database()
                        """
                    )
                )
            return plain(collection, expansions)

        monkeypatch.setattr(published_of(application).attribution, "embed_units", embed_and_record)
        past = rebuild_past(application, taught, until)
        assert embedded == [0]
        undo.assert_same(list_meant(application, past.collection), then)

    def test_invalid_past_state_requests_are_refused(self, application: Application, taught: str) -> None:
        moment, scope = now(application), application.auth.access.scope(taught)
        with pytest.raises(InvalidRequestError, match="yet to come"):
            history_of(application).past.request(scope, moment + timedelta(hours=1))
        with pytest.raises(InvalidRequestError, match="offset"):
            history_of(application).past.request(scope, datetime(2026, 5, 1))
        with pytest.raises(InvalidRequestError, match="no name"):
            history_of(application).past.request(scope, moment, into="not a name")
        with pytest.raises(ConflictError, match="already"):
            history_of(application).past.request(scope, moment, into=taught)
        with (
            application.database.hold_lock(f"replay:local/{taught}-past"),
            pytest.raises(ConflictError, match="Another process"),
        ):
            history_of(application).past.make(scope.collection, moment, f"{taught}-past")
        assert {row["kind"] for row in state.rows(application, taught, "job")} == {"ingest"}

    def test_a_deleted_collection_is_not_taken_for_its_successor(
        self, application: Application, curie: str, ingest: Ingest
    ) -> None:
        scope = application.auth.access.scope(curie)
        application.corpus.ingest.delete_collection(scope)
        ingest(*CURIE)
        with pytest.raises(NotFoundError):
            history_of(application).past.request(scope, now(application))


class TestJobs:
    def request_past(self, application: Application, taught: str) -> UUID:
        return history_of(application).past.request(
            application.auth.access.scope(taught), now(application), into=f"{taught}-past", key="once"
        )

    def test_a_key_repeats_the_first_answer(self, application: Application, taught: str) -> None:
        scope, moment = application.auth.access.scope(taught), now(application)
        first = history_of(application).past.request(scope, moment, key="once")
        assert history_of(application).past.request(scope, moment, key="once") == first
        with pytest.raises(IdempotencyConflictError):
            history_of(application).past.request(scope, moment - timedelta(seconds=1), key="once")

    def test_one_that_was_made_before_its_worker_was_lost_is_not_made_again(
        self, application: Application, taught: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def raise_interrupt(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        job_id = self.request_past(application, taught)
        with monkeypatch.context() as patched:
            patched.setattr(Work, "finish", raise_interrupt)
            with pytest.raises(KeyboardInterrupt):
                application.jobs.runner.run_ready()
        made = application.auth.access.scope(f"{taught}-past")
        assert run_again(application, application.jobs.runner) == 1
        job = application.jobs.jobs.job(application.auth.access.scope(taught), job_id)
        assert (job.status, (job.result or {})["events"], job.stage) == ("succeeded", 16, "statistics of states")
        assert application.auth.access.scope(f"{taught}-past") == made

    def test_cancelled_past_state_leaves_nothing(
        self, application: Application, taught: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job_id = self.request_past(application, taught)
        report = Work.report

        def cancel(work: Work, writer: Writer, **said: Any) -> None:
            if said["stage"] == "verdicts":
                application.jobs.jobs.cancel(application.auth.access.scope(taught), job_id)
            report(work, writer, **said)

        monkeypatch.setattr(Work, "report", cancel)
        assert application.jobs.runner.run_ready() == 1
        job = application.jobs.jobs.job(application.auth.access.scope(taught), job_id)
        assert (job.status, job.stage, job.result) == ("cancelled", "verdicts", None)
        assert f"{taught}-past" not in state.names(application)
        assert_nothing_left(application)

    def test_one_whose_name_was_taken_meanwhile_fails(
        self, application: Application, taught: str, ingest: Ingest
    ) -> None:
        job_id = self.request_past(application, taught)
        ingest(BERLIN, into=f"{taught}-past")
        application.jobs.runner.run_ready()  # to try again would change nothing
        job = application.jobs.jobs.job(application.auth.access.scope(taught), job_id)
        assert (job.status, job.error) == ("failed", f"There is a collection '{taught}-past' already.")
