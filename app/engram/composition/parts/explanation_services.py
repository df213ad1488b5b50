"""Explanations: what moved a memory, and what a collection has learned."""

from dataclasses import dataclass

from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.services.explanations.learning_overview import LearningOverviewService
from engram.services.explanations.sentence_explanations import ExplanationService
from engram.storage.database import Database


@dataclass(frozen=True, eq=False)
class ExplanationServices:
    """Services that explain learned state. Each is made when first used."""

    database: Database
    models: Models

    @locked_property
    def explain(self) -> ExplanationService:
        """Explanations of sentences."""
        return ExplanationService(self.database, self.models.encoder)

    @locked_property
    def learned(self) -> LearningOverviewService:
        """Overview of learned state."""
        return LearningOverviewService(self.database)
