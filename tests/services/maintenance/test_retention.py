"""Retention on the real Postgres: what goes when its time is over, and what must not depend on it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from uuid import UUID, uuid4

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context.errors import NotFoundError
from engram.services.auth.scope import LOCAL
from engram.services.maintenance.audit_recording import PendingAct
from engram.services.maintenance.retention import RetentionDays, RetentionResult, RetentionService
from engram.services.question.query import Query
from engram.storage.question import episode_partitions
from engram.storage.question.episode_partitions import WEEK, compute_monday
from tests.support import state, undo
from tests.support.databases import application_on

QUESTION = "Where was Marie Curie born?"


@pytest.fixture(scope="module")
def application(own: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    """One on a database of its own: weeks are everybody's."""
    with application_on(own, settings, application) as services:
        yield services


def retention(
    application: Application,
    *,
    queries: int = 0,
    jobs: int = 0,
    keys: int = 0,
    audit_bodies: int = 0,
    verdicts: int = 0,
) -> RetentionService:
    derived = [state.retire for state in application.hooks.derived_states]
    keep = RetentionDays(queries, jobs, keys, audit_bodies, verdicts)
    return RetentionService(application.database, keep, derived, application.revocation.erasure.anonymise_aged)


def run(service: RetentionService, now: datetime | None = None) -> RetentionResult:
    retired = service.run(now)
    assert retired is not None
    return retired


def list_standing(application: Application) -> list[date]:
    with application.database.read() as reader:
        return episode_partitions.list_standing(reader)


def ask(application: Application, name: str) -> UUID:
    return application.answers.question.answer(
        Query(text=QUESTION, scope=application.auth.access.scope(name))
    ).query_id


@dataclass(frozen=True)
class JudgedQuery:
    collection: str
    query_id: UUID


@pytest.fixture
def judged(application: Application, curie: str) -> JudgedQuery:
    """A collection with a question that was asked and judged."""
    query_id = ask(application, curie)
    sentence = min(state.sentences(application, curie, "curie").values())
    state.judge(application, curie, query_id, [sentence], wait=True)
    return JudgedQuery(curie, query_id)


class TestQueries:
    def test_a_week_goes_once_it_ended_as_many_days_ago(
        self, application: Application, judged: JudgedQuery
    ) -> None:
        now = datetime.now(UTC)
        end = datetime.combine(compute_monday(now), datetime.min.time(), UTC) + WEEK
        service = retention(application, queries=30)

        assert run(service, end + timedelta(days=30, seconds=-1)).weeks == []
        application.answers.episodes.read(application.auth.access.scope(judged.collection), judged.query_id)

        assert run(service, end + timedelta(days=30)).weeks == [compute_monday(now)]
        with pytest.raises(NotFoundError, match=str(judged.query_id)):
            application.answers.episodes.read(application.auth.access.scope(judged.collection), judged.query_id)

    def test_learned_state_outlives_expired_episodes(self, application: Application, judged: JudgedQuery) -> None:
        sentence = min(state.sentences(application, judged.collection, "curie").values())
        again = ask(application, judged.collection)
        state.judge(application, judged.collection, again, [sentence], wait=True)
        before = state.rows(application, judged.collection, "question_support")
        now = datetime.now(UTC)

        assert compute_monday(now) in run(retention(application, queries=1), now + timedelta(days=9)).weeks

        undo.assert_verified(application, judged.collection)
        assert state.rows(application, judged.collection, "question_support") == before
        last = max(state.list_applied_order(application, judged.collection))
        application.learning.revocation.revoke(application.auth.access.scope(judged.collection), last)
        undo.assert_verified(application, judged.collection)
        assert ask(application, judged.collection)

    def test_query_creates_its_missing_week_partition(self, application: Application, curie: str) -> None:
        now = datetime.now(UTC)
        run(retention(application, queries=1), now + timedelta(days=9))
        assert compute_monday(now) not in list_standing(application)

        query_id = ask(application, curie)

        assert compute_monday(now) in list_standing(application)
        assert application.answers.episodes.read(application.auth.access.scope(curie), query_id).judged == 0

    def test_room_is_made_before_it_is_needed(self, application: Application) -> None:
        now = datetime.now(UTC) + timedelta(days=1000)
        run(retention(application), now)
        assert {compute_monday(now), compute_monday(now + WEEK)} <= set(list_standing(application))

    def test_a_week_half_dropped_is_dropped_by_the_next_run(self, application: Application) -> None:
        gone = datetime(2020, 1, 8, tzinfo=UTC)
        with application.database.write() as writer:
            episode_partitions.make(writer, compute_monday(gone))
        with application.database.administer() as administrator:
            administrator.execute("ALTER TABLE episode DETACH PARTITION episode_20200106 CONCURRENTLY")
        assert compute_monday(gone) in list_standing(application)

        assert run(retention(application, queries=1)).weeks == [date(2020, 1, 6)]
        assert compute_monday(gone) not in list_standing(application)


class TestJobsAndKeys:
    def test_jobs_go_as_many_days_after_they_ended(self, application: Application, curie: str) -> None:
        service, now = retention(application, jobs=7), datetime.now(UTC)
        held = len(state.rows(application, curie, "job"))
        assert held > 0

        assert run(service, now + timedelta(days=6)).jobs == 0
        assert run(service, now + timedelta(days=8)).jobs >= held
        assert state.rows(application, curie, "job") == []
        assert state.rows(application, curie, "passage")

    def test_first_answers_go_with_their_days(self, application: Application, curie: str) -> None:
        key = uuid4().hex
        with application.database.write() as writer:
            writer.execute(
                """
                INSERT INTO idempotency (collection_id, key, body_hash, answer)
                SELECT id, %(key)s, '', '{}' FROM collection WHERE name = %(name)s
                """,
                {"key": key, "name": curie},
            )
        service, now = retention(application, keys=7), datetime.now(UTC)

        run(service, now + timedelta(days=6))
        assert [row["key"] for row in state.rows(application, curie, "idempotency")] == [key]
        assert run(service, now + timedelta(days=8)).keys >= 1
        assert state.rows(application, curie, "idempotency") == []

    def test_a_second_run_leaves_it_to_the_first(self, application: Application) -> None:
        with application.database.hold_lock("retention"):
            assert retention(application, queries=1).run() is None


def test_quota_usage_expires_after_a_month(application: Application) -> None:
    spent = "SELECT count(*) FROM quota_usage WHERE principal = 'of long ago'"
    with application.database.write() as writer:
        writer.execute("INSERT INTO quota_usage VALUES ('local', 'of long ago', '2020-01-01', 'queries', 1)")
    application.maintenance.retention.run()
    with application.database.read() as reader:
        assert reader.scalar(spent) == 0


def test_audit_bodies_expire_before_their_entries(application: Application) -> None:
    now = datetime.now(UTC)
    doing = PendingAct(
        principal="alice", tenant="local", action="put", target="/x", client="192.0.2.7", body="body"
    )
    acts = [application.maintenance.audit_log.begin(doing) for _ in range(2)]
    for act in acts:
        application.maintenance.audit_log.end(act, 200)
    with application.database.write() as writer:
        writer.execute(
            "UPDATE audit_log SET begun_at = %(then)s WHERE id = %(id)s",
            {"then": now - timedelta(days=31), "id": acts[0]},
        )

    assert run(retention(application), now).audit_bodies == 0  # for ever
    assert run(retention(application, audit_bodies=30), now).audit_bodies == 1
    assert run(retention(application, audit_bodies=30), now).audit_bodies == 0

    kept = {act.id: act for act in application.maintenance.audit_log.page(LOCAL, None, 10)}
    assert [(kept[act].body, kept[act].client) for act in acts] == [(None, None), ("body", "192.0.2.7")]
    assert {(kept[act].principal, kept[act].action, kept[act].status) for act in acts} == {("alice", "put", 200)}


def test_a_worker_whose_clock_is_ahead_deletes_nothing(
    application: Application, judged: JudgedQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    class YearsAhead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "YearsAhead":
            return cls.fromtimestamp(datetime.now(UTC).timestamp() + 1_000 * 86_400.0, tz)

    monkeypatch.setattr("engram.services.maintenance.retention.datetime", YearsAhead)
    retired = run(retention(application, queries=90, jobs=30, keys=7, audit_bodies=365))
    assert retired == RetentionResult([], 0, 0)
    assert compute_monday(datetime.now(UTC)) in list_standing(application)
    application.answers.episodes.read(application.auth.access.scope(judged.collection), judged.query_id)


@pytest.mark.wing("published")
def test_old_verdicts_lose_their_judge_and_keep_what_they_taught(
    application: Application, judged: JudgedQuery
) -> None:
    now = datetime.now(UTC)
    service = retention(application, verdicts=30)
    before = state.rows(application, judged.collection, "feedback_event")
    assert run(service, now + timedelta(days=29)).verdicts == 0
    assert state.rows(application, judged.collection, "feedback_event") == before

    assert run(service, now + timedelta(days=31)).verdicts >= len(before) == 1

    undo.apply(application, judged.collection, [before[0]["id"]])
    (left,) = state.rows(application, judged.collection, "feedback_event")
    assert (left["principal"], left["status"]) == ("erased", "applied")
    assert left["judge"].startswith("erased-")
    assert state.rows(application, judged.collection, "question_support")
    asked = state.rows(application, judged.collection, "judged_query")
    assert QUESTION not in {row["question"] for row in asked}
    assert run(service, now + timedelta(days=60)).verdicts == 0
    undo.assert_verified(application, judged.collection)
