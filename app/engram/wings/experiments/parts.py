"""Services of the wing."""

from dataclasses import dataclass

from engram.composition.locked_property import locked_property
from engram.composition.parts.auth_services import AuthServices
from engram.composition.parts.retrieval_services import RetrievalServices
from engram.config.settings import Settings
from engram.core.learning.logged_verdict import GENERATION_THRESHOLD
from engram.storage.database import Database
from engram.wings.experiments.services.comparison_service import ComparisonService
from engram.wings.experiments.services.lift_service import LiftService


@dataclass(frozen=True, eq=False)
class ExperimentServices:
    """Services that compare arms. Each is made when first used."""

    settings: Settings
    database: Database
    auth: AuthServices
    retrieval: RetrievalServices

    @locked_property
    def lift(self) -> LiftService:
        """Comparison of an experiment's arms by their verdicts."""
        return LiftService(self.database, generation_threshold=GENERATION_THRESHOLD)

    @locked_property
    def compare(self) -> ComparisonService:
        """Comparison of one query under two arms."""
        return ComparisonService(self.auth.reads, self.retrieval.retrieve)
