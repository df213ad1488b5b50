"""Maintenance services, which the worker and the command line run."""

from functools import cached_property

from engram.config.settings import Settings
from engram.runtime.servers import Servers
from engram.services.corpus.collection_removal import RemovalService
from engram.services.maintenance.backup_service import BackupService
from engram.services.maintenance.index_maintenance import MaintainService, Thresholds
from engram.services.maintenance.planner_statistics import StatisticsService
from engram.services.maintenance.retention import RetentionDays, RetentionService
from engram.storage.database import Database


class Maintenance:
    """Maintenance services of one process, each made when first used."""

    def __init__(self, settings: Settings, addresses: Servers, database: Database) -> None:
        self._settings = settings
        self._addresses = addresses
        self._database = database

    @cached_property
    def indexes(self) -> MaintainService:
        """Maintenance of the vector indexes."""
        settings = self._settings
        thresholds = Thresholds(settings.maintenance_dead_share, settings.maintenance_dead_rows)
        return MaintainService(
            self._database,
            thresholds,
            memory_mb=settings.maintenance_memory_mb,
            exact_search_limit=settings.exact_search_limit,
            least_recall=settings.maintenance_recall,
        )

    @cached_property
    def retention(self) -> RetentionService:
        """Removal of records past their retention."""
        settings = self._settings
        days = RetentionDays(
            settings.keep_queries_days,
            settings.keep_jobs_days,
            settings.keep_idempotency_days,
            settings.keep_audit_bodies_days,
        )
        return RetentionService(self._database, days)

    @cached_property
    def statistics(self) -> StatisticsService:
        """Upkeep of the statistics that Postgres plans by."""
        return StatisticsService(self._database)

    @cached_property
    def backup(self) -> BackupService:
        """Backup and restore."""
        return BackupService(self._database, self._addresses.database_url, self._settings.postgres_programs)

    @cached_property
    def removal(self) -> RemovalService:
        """Removal of the rows of deleted collections."""
        return RemovalService(self._database)
