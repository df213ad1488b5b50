"""Maintenance: the health of the installation, its indexes and its records."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engram.composition.hooks import Hooks
from engram.composition.local_servers import LocalServers
from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.composition.parts.revocation_services import RevocationServices
from engram.composition.servers import Connections, Servers
from engram.config.settings import Settings
from engram.services.corpus.collection_removal import RemovalService
from engram.services.maintenance.audit_recording import AuditLog
from engram.services.maintenance.health_checks import HealthService
from engram.services.maintenance.index_maintenance import (
    EXACT_SEARCH_LIMIT,
    LEAST_RECALL,
    IndexMaintenanceService,
    Thresholds,
)
from engram.services.maintenance.planner_statistics import StatisticsService
from engram.services.maintenance.retention import RetentionDays, RetentionService
from engram.services.maintenance.service_gauges import SharedGauges
from engram.services.maintenance.tenant_closing import ClosingService
from engram.services.maintenance.wing_clearing import WingClearingService, WingHoldings

DEAD_SHARE = 0.3
"""Share of an index's entries whose rows are gone from which on it is built anew."""
DEAD_ROWS = 1000
"""An index with fewer such entries is left alone."""
KEEP_IDEMPOTENCY_DAYS = 7
"""Days within which a write repeated under its Idempotency-Key is answered as it was first."""
KEEP_JOBS_DAYS = 30
"""Days for which finished jobs can be read."""


@dataclass(frozen=True, eq=False)
class MaintenanceServices:
    """Services that operators, the worker and the command line run. Each is made when first used.

    Attributes:
        announce_access_change: drops cached access keys in every process.
        wing_places: where each installed wing may hold something.
        wings_on: names of the wings that are on.
        local_servers: runs servers on this machine; None where none does.
    """

    settings: Settings
    addresses: Servers
    connections: Connections
    models: Models
    announce_access_change: Callable[[], None]
    hooks: Hooks
    revocation: RevocationServices
    wing_places: Mapping[str, WingHoldings]
    wings_on: Sequence[str]
    local_servers: LocalServers | None

    @locked_property
    def indexes(self) -> IndexMaintenanceService:
        """Maintenance of the vector indexes."""
        return IndexMaintenanceService(
            self.connections.database,
            Thresholds(DEAD_SHARE, DEAD_ROWS),
            memory_mb=self.settings.maintenance_memory_mb,
            exact_search_limit=EXACT_SEARCH_LIMIT,
            least_recall=LEAST_RECALL,
        )

    @locked_property
    def retention(self) -> RetentionService:
        """Removal of records past their retention."""
        settings = self.settings
        days = RetentionDays(
            settings.keep_queries_days,
            KEEP_JOBS_DAYS,
            KEEP_IDEMPOTENCY_DAYS,
            settings.keep_audit_bodies_days,
            settings.keep_verdicts_days,
        )
        retire = [state.retire for state in self.hooks.derived_states]
        return RetentionService(self.connections.database, days, retire, self.revocation.erasure.anonymise_aged)

    @locked_property
    def statistics(self) -> StatisticsService:
        """Upkeep of the statistics that Postgres plans by."""
        return StatisticsService(self.connections.database)

    @locked_property
    def removal(self) -> RemovalService:
        """Removal of the rows of deleted collections."""
        return RemovalService(self.connections.database)

    @locked_property
    def closing(self) -> ClosingService:
        """Removal of tenants."""
        return ClosingService(self.connections.database, self.announce_access_change)

    @locked_property
    def wing_clearing(self) -> WingClearingService:
        """Clearing of wings that are off."""
        return WingClearingService(self.connections.database, self.wing_places, self.wings_on)

    @locked_property
    def audit_log(self) -> AuditLog:
        """Audit log of administrative acts."""
        return AuditLog(self.connections.database)

    @locked_property
    def state(self) -> SharedGauges:
        """Gauges of the present state, for metrics."""
        return SharedGauges(self.connections.database, self.connections.stream)

    @locked_property
    def health(self) -> HealthService:
        """Checks of what the process depends on."""
        settings, local = self.settings, self.local_servers
        is_local = local is not None and local.holds(settings, self.addresses.database_url)
        return HealthService(
            self.connections.database,
            self.connections.stream,
            self.models.encoder,
            self.models.language,
            settings.llm_base_url,
            embedded=settings.data_dir if is_local else None,
        )
