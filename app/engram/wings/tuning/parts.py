"""Services of the wing."""

from dataclasses import dataclass

from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.composition.wings import WingHolder
from engram.storage.database import Database
from engram.wings.tuning.services.tuning_job import TuningJob
from engram.wings.tuning.services.tuning_service import TuningService


@dataclass(eq=False)
class TuningServices:
    """Services of tuned question encoders. Each is made when first used, or assigned in place of that."""

    database: Database
    models: Models

    @locked_property
    def tuning(self) -> TuningService:
        """The generations that were tried, and the one that serves."""
        return TuningService(self.database, lambda: self.models.encoder)

    @locked_property
    def job(self) -> TuningJob:
        """Job that learns generations."""
        return TuningJob(self.database, lambda: self.models.encoder)


def tuning_of(application: WingHolder) -> TuningServices:
    """Return the services of tuning of an application.

    Raises:
        LookupError: the wing is off.
    """
    return application.wing(TuningServices)
