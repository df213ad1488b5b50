"""Passage keys: credit of expansion units, evolution and views."""

from dataclasses import dataclass

from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.services.passage_keys.attribution import Attribution
from engram.services.passage_keys.key_evolution import KeyEvolutionService
from engram.services.passage_keys.key_view import KeyViewService
from engram.storage.database import Database


@dataclass(frozen=True, eq=False)
class PassageKeyServices:
    """Services that move passage keys and show them. Each is made when first used."""

    database: Database
    models: Models

    @locked_property
    def attribution(self) -> Attribution:
        """Credit of expansion units by verdicts."""
        models = self.models
        return Attribution(
            self.database, models.encoder, models.limits, models.key_learning, models.expansion_validation
        )

    @locked_property
    def evolve(self) -> KeyEvolutionService:
        """Evolution of passage keys."""
        return KeyEvolutionService(self.database, self.models.key_learning.rules)

    @locked_property
    def key_view(self) -> KeyViewService:
        """Views of passage keys."""
        return KeyViewService(self.database, self.models.key_learning.rules)
