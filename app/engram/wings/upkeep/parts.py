"""Services of the wing."""

from dataclasses import dataclass

from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.composition.parts.maintenance_services import MaintenanceServices
from engram.composition.servers import Connections, Servers
from engram.composition.wings import WingHolder
from engram.config.settings import Settings
from engram.wings.upkeep.services.backup_service import BackupService
from engram.wings.upkeep.services.doctor_checks import DoctorService


@dataclass(frozen=True, eq=False)
class UpkeepServices:
    """Services that operators run from the command line. Each is made when first used."""

    settings: Settings
    addresses: Servers
    connections: Connections
    models: Models
    maintenance: MaintenanceServices

    @locked_property
    def backup(self) -> BackupService:
        """Backup and restore."""
        programs, local = self.settings.upkeep_postgres_programs, self.maintenance.local_servers
        if programs is None and local is not None:
            programs = local.find_programs()
        return BackupService(self.connections.database, self.addresses.database_url, programs)

    @locked_property
    def doctor(self) -> DoctorService:
        """Checks of the whole installation."""
        connections, models = self.connections, self.models
        return DoctorService(
            self.settings,
            connections.database,
            connections.stream,
            lambda: models.encoder,
            lambda: models.reranker,
            self.maintenance.wing_clearing,
        )


def upkeep_of(application: WingHolder) -> UpkeepServices:
    """Return the services of upkeep of an application.

    Raises:
        LookupError: the wing is off.
    """
    return application.wing(UpkeepServices)
