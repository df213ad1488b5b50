"""Retention: what is kept for a time only goes when it is over."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

import structlog

from engram.storage.auth import tenants
from engram.storage.database import Database, Writer
from engram.storage.jobs import idempotency, jobs
from engram.storage.maintenance import audit_log, server_clock
from engram.storage.question import episode_partitions
from engram.storage.question.episode_partitions import WEEK, compute_monday

log = structlog.get_logger(__name__)

BATCH = 1_000
Delete = Callable[[Writer, datetime, int], int]
"""Deletes at most so many rows of before the moment; returns how many."""
SPENT_DAYS = 30
"""For how long it can be seen what quotas were spent of a day."""


@dataclass(frozen=True, slots=True)
class RetentionDays:
    """For how many days something is kept; 0: for ever.

    Attributes:
        queries: answered queries, from the end of the week (UTC) they came in, and sessions, from their ends.
            Verdicts keep what they go by.
        jobs: jobs that ended, with the lines they rejected.
        keys: first answers of keyed writes other than feedback.
        audit_bodies: what was sent with administrative acts, and from where.
        verdicts: who gave verdicts, and the words of their questions; what they taught stays.
    """

    queries: int
    jobs: int
    keys: int
    audit_bodies: int = 0
    verdicts: int = 0


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """Weeks removed, by their Mondays; counts of jobs, keys, derived rows, stripped audit bodies and verdicts."""

    weeks: list[date]
    jobs: int
    keys: int
    derived: int = 0
    audit_bodies: int = 0
    verdicts: int = 0


class RetentionService:
    """Removes what was kept long enough, and makes room for the weeks to come."""

    def __init__(
        self,
        database: Database,
        keep: RetentionDays,
        derived: Sequence[Delete],
        anonymise: Callable[[datetime], int],
    ) -> None:
        """Make the service.

        Args:
            derived: each deletes what is kept as long as answered queries (``DerivedState.retire``).
            anonymise: anonymises some verdicts from before a moment, and returns how many.
        """
        self._database = database
        self._keep = keep
        self._derived = derived
        self._anonymise = anonymise

    def run(
        self, now: datetime | None = None, should_stop: Callable[[], bool] = lambda: False
    ) -> RetentionResult | None:
        """Do so once; None if another process is at it.

        Args:
            now: the moment (with its zone) to go by; by default the present one of Postgres. By its own
                clock, a worker that is months ahead would delete what others still keep.
            should_stop: polled; once true, the rest is left to the next run.

        Raises:
            UnavailableError: Postgres cannot be reached.
        """
        if now is None:
            with self._database.read() as reader:
                now = server_clock.present(reader)
        with self._database.hold_lock("retention") as is_locked:
            if not is_locked:
                return None
            for moment in (now, now + WEEK):
                with self._database.write() as writer:
                    episode_partitions.make(writer, compute_monday(moment))
            with self._database.write_once() as writer:
                tenants.forget_spent(writer, SPENT_DAYS)
            retired = RetentionResult(
                self._drop_weeks(now, should_stop),
                self._delete(jobs.delete_ended, now, self._keep.jobs, should_stop),
                self._delete(idempotency.delete_before, now, self._keep.keys, should_stop),
                sum(self._delete(delete, now, self._keep.queries, should_stop) for delete in self._derived),
                self._delete(audit_log.strip, now, self._keep.audit_bodies, should_stop),
                self._anonymise_verdicts(now, should_stop),
            )
        if retired != RetentionResult([], 0, 0):
            log.info(
                "retired",
                weeks=[str(monday) for monday in retired.weeks],
                jobs=retired.jobs,
                keys=retired.keys,
                derived=retired.derived,
                audit_bodies=retired.audit_bodies,
                verdicts=retired.verdicts,
            )
        return retired

    def _anonymise_verdicts(self, now: datetime, should_stop: Callable[[], bool]) -> int:
        anonymised = 0
        while self._keep.verdicts and not should_stop():
            batch = self._anonymise(now - timedelta(days=self._keep.verdicts))
            anonymised += batch
            if not batch:
                break
        return anonymised

    def _drop_weeks(self, now: datetime, should_stop: Callable[[], bool]) -> list[date]:
        if not self._keep.queries:
            return []
        before = now - timedelta(days=self._keep.queries)
        dropped = []
        with self._database.administer(should_stop) as administrator:
            for monday in episode_partitions.list_standing(administrator):
                over = datetime.combine(monday, time(), UTC) + WEEK <= before
                if over and not should_stop():
                    episode_partitions.drop(administrator, monday)
                    dropped.append(monday)
        return dropped

    def _delete(
        self,
        delete: Delete,
        now: datetime,
        days: int,
        should_stop: Callable[[], bool],
    ) -> int:
        """Rows removed, batch by batch."""
        removed = 0
        while days and not should_stop():
            with self._database.write_once() as writer:
                deleted = delete(writer, now - timedelta(days=days), BATCH)
            removed += deleted
            if deleted < BATCH:
                break
        return removed
