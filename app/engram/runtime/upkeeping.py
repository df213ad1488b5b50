"""The part of the application that looks after it: indexes, retention, health, backups, limits, telemetry."""

from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property

from engram import __version__
from engram.config.settings import Settings
from engram.context.errors import ConfigurationError
from engram.runtime.parts import Parts
from engram.services.auth.rate_limits import Rates
from engram.services.auth.replica_reads import Reads
from engram.services.corpus.collection_removal import RemovalService
from engram.services.maintenance.audit_recording import ActsService
from engram.services.maintenance.backup_service import BackupService
from engram.services.maintenance.doctor_checks import DoctorService
from engram.services.maintenance.health_checks import HealthService
from engram.services.maintenance.index_maintenance import MaintainService, Thresholds
from engram.services.maintenance.planner_statistics import StatisticsService
from engram.services.maintenance.retention import RetentionDays, RetentionService
from engram.services.maintenance.service_gauges import StateService
from engram.services.maintenance.tenant_closing import ClosingService
from engram.storage.access_notices import Notices
from engram.storage.corpus import collections
from engram.storage.database import Database
from engram.storage.rate_buckets import Buckets
from engram.storage.read_positions import Positions
from engram.storage.wake_stream import WakeStream
from engram.telemetry import tracing
from engram.telemetry.metrics_endpoint import Check, Exposed

RATE_ELSEWHERE = 20.0
"""Requests a second of each, where nothing is configured and others can reach the API."""


class Upkeep(Parts):
    """What needs servers and serves no question."""

    def __init__(self, settings: Settings, database_url: str, redis_url: str, consumer: str) -> None:
        super().__init__(settings)
        replica = settings.read_database_url
        self.database = Database(
            database_url,
            pool_size=settings.database_pool_size,
            statement_timeout_seconds=settings.statement_timeout_seconds,
            hnsw_ef_search=settings.hnsw_ef_search,
            row_security=settings.row_security,
            replica_url=None if replica is None else replica.get_secret_value(),
            replica_lag_seconds=settings.read_lag_seconds,
            replica_wait_seconds=settings.read_wait_seconds,
        )
        self.stream = WakeStream(redis_url, consumer)
        self._database_url = database_url
        self._redis_url = redis_url
        self._observing = ExitStack()

    @cached_property
    def reads(self) -> Reads:
        """Reads on the replica, if there is one."""
        return Reads(self.database, self.positions)

    @cached_property
    def positions(self) -> Positions:
        """What they must see."""
        return Positions(self._redis_url)

    @cached_property
    def notices(self) -> Notices:
        """Tells processes of changes of access keys."""
        return Notices(self._redis_url)

    def access_changed(self) -> None:
        """Have every process look access keys up anew."""
        if "authentication" in self.__dict__:
            self.__dict__["authentication"].forget()
        self.notices.tell()

    @cached_property
    def maintain(self) -> MaintainService:
        """Keeps the vector indexes healthy."""
        settings = self.settings
        thresholds = Thresholds(settings.maintenance_dead_share, settings.maintenance_dead_rows)
        return MaintainService(
            self.database,
            thresholds,
            memory_mb=settings.maintenance_memory_mb,
            exact_search_limit=settings.exact_search_limit,
            least_recall=settings.maintenance_recall,
        )

    @cached_property
    def retention(self) -> RetentionService:
        """Removes what was kept long enough."""
        settings = self.settings
        keep = RetentionDays(
            settings.keep_queries_days,
            settings.keep_jobs_days,
            settings.keep_idempotency_days,
            settings.keep_act_bodies_days,
        )
        return RetentionService(self.database, keep)

    @cached_property
    def statistics(self) -> StatisticsService:
        """Keeps the planner informed."""
        return StatisticsService(self.database)

    @cached_property
    def health(self) -> HealthService:
        """Looks at what the process depends on."""
        settings = self.settings
        return HealthService(
            self.database,
            self.stream,
            self.encoder,
            self.language,
            settings.llm_base_url,
            embedded=None if settings.database_url else settings.data_dir,
        )

    @cached_property
    def rates(self) -> Rates | None:
        """Counts how often each asks; None if that is not limited."""
        settings = self.settings
        rate = settings.rate_per_second
        if rate is None:
            rate = 0.0 if settings.on_loopback else RATE_ELSEWHERE
        return Rates(self.buckets, rate, settings.rate_burst) if rate else None

    @cached_property
    def buckets(self) -> Buckets:
        """What it counts in."""
        return Buckets(self._redis_url)

    @cached_property
    def state(self) -> StateService:
        """Looks at what metrics tell of the moment."""
        return StateService(self.database, self.stream)

    @cached_property
    def acts(self) -> ActsService:
        """Records what administrators do."""
        return ActsService(self.database)

    @cached_property
    def backup(self) -> BackupService:
        """Makes backups and puts them back."""
        return BackupService(self.database, self._database_url, self.settings.postgres_programs)

    @cached_property
    def closing(self) -> ClosingService:
        """Removes tenants."""
        return ClosingService(self.database, self.access_changed)

    @cached_property
    def removal(self) -> RemovalService:
        """Removes what is left of deleted collections."""
        return RemovalService(self.database)

    @cached_property
    def doctor(self) -> DoctorService:
        """Looks whether anything is wrong."""
        return DoctorService(self.settings, self.database, self.stream, lambda: self.encoder, self.check_dimension)

    def observe(self, role: str, checks: Mapping[str, Check] | None = None) -> None:
        """Show metrics, where they have a port of their own, and send traces, if there is a receiver.

        Args:
            checks: path -> what is answered there beside the metrics.

        Raises:
            ConfigurationError: the port is taken, or traces cannot be made.
        """
        settings = self.settings
        if settings.metrics_port:
            shown = Exposed(settings.metrics_host, settings.metrics_port, self.state.metrics, checks)
            self._observing.callback(shown.close)
        if settings.otlp_endpoint:
            self._observing.callback(tracing.start(settings.otlp_endpoint, role, __version__, settings.otlp_share))

    def check_dimension(self) -> None:
        """Make sure that the encoder's vectors fit into the database.

        Raises:
            ConfigurationError: the dimension configured, migrated for and given by the encoder do not agree.
        """
        encoder, also = self.embedder, self.embedder_also
        if also is not None and also.dimension != encoder.dimension:
            raise ConfigurationError(
                f"ENGRAM_EMBEDDING_ALSO: {also.model} gives {also.dimension}-dimensional vectors, but all vectors "
                f"of a database have one dimension, here {encoder.dimension}."
            )
        if encoder.dimension != self.settings.embedding_dimension:
            raise ConfigurationError(
                f"{encoder.model} gives {encoder.dimension}-dimensional vectors, but "
                f"ENGRAM_EMBEDDING_DIMENSION is {self.settings.embedding_dimension}."
            )
        with self.database.read() as reader:
            collections.check_dimension(reader, encoder.model, encoder.dimension)

    def close(self) -> None:
        """Let go of every connection."""
        self._observing.close()
        self.database.close()
        self.stream.close()
        if "buckets" in self.__dict__:
            self.buckets.close()
        if "positions" in self.__dict__:
            self.positions.close()
        if "notices" in self.__dict__:
            self.notices.close()
        if "llm" in self.__dict__ and self.llm is not None:
            self.llm.close()
