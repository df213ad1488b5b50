"""Explanations: what moved a memory, and what a collection has learned."""

from dataclasses import dataclass
from functools import cached_property

from engram.runtime.models import Models
from engram.services.explanations.learning_overview import LearnedService
from engram.services.explanations.sentence_explanations import ExplainService
from engram.storage.database import Database


@dataclass(frozen=True, eq=False)
class ExplanationServices:
    """Services that explain learned state. Each is made when first used."""

    database: Database
    models: Models

    @cached_property
    def explain(self) -> ExplainService:
        """Explanations of sentences."""
        return ExplainService(self.database, self.models.encoder)

    @cached_property
    def learned(self) -> LearnedService:
        """Overview of learned state."""
        return LearnedService(self.database)
