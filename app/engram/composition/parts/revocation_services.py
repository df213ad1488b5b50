"""Learned state against the log: verified, erased with a person, and reset."""

from dataclasses import dataclass

from engram.composition.hooks import Hooks
from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.composition.parts.learning_services import LearningServices
from engram.services.erasure.erasure_service import ErasureService
from engram.services.erasure.person_export import ExportService
from engram.services.revocation.learning_reset import LearningResetService
from engram.services.revocation.verification import VerificationService
from engram.storage.database import Database


@dataclass(frozen=True, eq=False)
class RevocationServices:
    """Services that compute learned state again from the feedback log. Each is made when first used."""

    database: Database
    models: Models
    learning: LearningServices
    hooks: Hooks

    @locked_property
    def verification(self) -> VerificationService:
        """Verification that learned state follows from the log."""
        return VerificationService(self.database, self.models.priors, self.hooks.derived_states)

    @locked_property
    def erasure(self) -> ErasureService:
        """Erasure of what is stored of persons."""
        return ErasureService(self.database, self.learning.revocation, self.hooks.derived_states)

    @locked_property
    def export(self) -> ExportService:
        """Export of what is stored of persons."""
        return ExportService(self.database)

    @locked_property
    def learning_reset(self) -> LearningResetService:
        """Reset of learned state."""
        return LearningResetService(self.database, self.hooks.derived_states)
