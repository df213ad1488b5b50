"""Whether the process can serve, and whether anybody works on what waits."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engram.context import tenancy
from engram.context.bounded_call import SharedCall
from engram.context.errors import UnavailableError
from engram.providers.language import Language
from engram.services.encoders.encoder import Encoder
from engram.storage.database import Database
from engram.storage.maintenance.backlog import Backlog, backlog
from engram.storage.maintenance.schema_standing import load_standing
from engram.storage.postgres_errors import NOT_MIGRATED
from engram.storage.replica import Standing
from engram.storage.wake_stream import WakeStream

LATE_SECONDS = 300.0
"""What has waited for longer tells of workers that do not keep up."""
LEAST_DISK_BYTES = 512 * 2**20
ANSWER_SECONDS = 3.0
"""A server that is stopped never answers; one that takes longer is out of reach."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """State of the servers and models that the process depends on.

    Attributes:
        status: "degraded" where it serves and learning is delayed, or will be: without Redis, without a worker,
            with verdicts or jobs that waited for minutes, or with little room on the disk; or where a replica that
            is configured cannot be read on.
        migrations: "current", or "newer" where a later version has migrated the database and this one still works.
        workers: those that beat lately; None without Redis, where they beat.
        oldest_verdict_seconds, oldest_job_seconds: how long what waits has waited; None where nothing does.
        disk_free_bytes: where the embedded Postgres keeps its data; None of another one.
        replica: whether queries are read on the replica; while it is not "ok" they are read on the primary.
        replica_lag_seconds: all that is older is there; None where that is not known.
    """

    status: str
    postgres: str
    redis: str
    encoder: str
    language: str
    llm: str
    migrations: str
    workers: int | None
    oldest_verdict_seconds: float | None
    oldest_job_seconds: float | None
    disk_free_bytes: int | None
    replica: Standing | Literal["none"]
    replica_lag_seconds: float | None


class HealthService:
    """Looks at what the process depends on."""

    def __init__(
        self,
        database: Database,
        stream: WakeStream,
        encoder: Encoder,
        language: Language,
        llm_url: str | None,
        embedded: Path | None = None,
    ) -> None:
        """``embedded``: a folder on the disk of the embedded Postgres, if that is the one."""
        self._database = database
        self._stream = stream
        self._encoder = encoder
        self._language = language
        self._llm_url = llm_url
        self._embedded = embedded
        self._postgres = SharedCall(self._read_postgres)
        self._redis = SharedCall(self._count_workers)

    def readiness(self) -> Readiness:
        """The state of the dependencies.

        Raises:
            UnavailableError: Postgres is out of reach, not migrated to what this version needs, or does not answer
                within ``ANSWER_SECONDS``.
        """
        try:
            migrations, waiting = self._postgres.ask(ANSWER_SECONDS)
        except TimeoutError as error:
            raise UnavailableError(f"Postgres did not answer within {ANSWER_SECONDS:g} s.") from error
        try:
            workers = self._redis.ask(ANSWER_SECONDS)
        except TimeoutError:
            workers = None
        free = None if self._embedded is None else shutil.disk_usage(self._embedded).free
        late = max(waiting.verdict_seconds or 0.0, waiting.job_seconds or 0.0) > LATE_SECONDS
        short = free is not None and free < LEAST_DISK_BYTES
        replica = None if self._database.replica is None else self._database.replica.get_last_position()
        fit = replica is None or replica.standing == "ok"
        return Readiness(
            status="degraded" if not workers or late or short or not fit else "ok",
            postgres="ok",
            redis="unreachable" if workers is None else "ok",
            encoder=self._encoder.model,
            language=self._language.name,
            llm="configured" if self._llm_url else "not configured",
            migrations=migrations,
            workers=workers,
            oldest_verdict_seconds=waiting.verdict_seconds,
            oldest_job_seconds=waiting.job_seconds,
            disk_free_bytes=free,
            replica="none" if replica is None else replica.standing,
            replica_lag_seconds=None if replica is None else replica.lag_seconds,
        )

    def _read_postgres(self) -> tuple[str, Backlog]:
        with tenancy.allow_all_tenants(), self._database.read() as reader:
            migrations = load_standing(reader)
            if migrations not in {"current", "newer"}:
                raise UnavailableError(NOT_MIGRATED)
            return migrations, backlog(reader)

    def _count_workers(self) -> int | None:
        """Count workers; None if Redis is out of reach."""
        return self._stream.workers() if self._stream.ping() else None
