"""Facts: intake, alignment, search and corrections."""

from dataclasses import dataclass

from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.config.settings import Settings
from engram.services.facts.entity_alignment import AlignmentService
from engram.services.facts.entity_merge import EntityMergeService
from engram.services.facts.fact_instructions import InstructionService
from engram.services.facts.fact_retraction import RetractionService
from engram.services.facts.fact_search import FactSearch
from engram.services.facts.fact_service import FactsService
from engram.services.facts.fact_views import FactViewService
from engram.services.facts.graph_merge import GraphMergeService
from engram.services.facts.predicate_service import PredicatesService
from engram.services.facts.text_facts import TextService
from engram.storage.database import Database


@dataclass(frozen=True, eq=False)
class FactServices:
    """Services of facts. Each is made when first used."""

    settings: Settings
    database: Database
    models: Models

    @locked_property
    def facts(self) -> FactsService:
        """Intake of statements."""
        return FactsService(self.database, self.models.noise, self.align)

    @locked_property
    def texts(self) -> TextService:
        """Extraction of facts from text."""
        return TextService(self.models.language, self.models.llm)

    @locked_property
    def fact_search(self) -> FactSearch:
        """Search of facts."""
        return FactSearch(self.database)

    @locked_property
    def show(self) -> FactViewService:
        """Views of facts and their entities."""
        return FactViewService(self.database)

    @locked_property
    def join(self) -> EntityMergeService:
        """Merges and splits of fact entities."""
        return EntityMergeService(self.database, self.models.noise)

    @locked_property
    def align(self) -> AlignmentService:
        """Alignment of entity and predicate names."""
        return AlignmentService(self.database, self.models.encoder)

    @locked_property
    def adopt(self) -> GraphMergeService:
        """Merges of fact graphs."""
        return GraphMergeService(self.database, self.models.noise, self.align)

    @locked_property
    def withdraw(self) -> RetractionService:
        """Retraction of statements."""
        return RetractionService(self.database, self.models.noise)

    @locked_property
    def predicates(self) -> PredicatesService:
        """Settings of predicates."""
        return PredicatesService(self.database)

    @locked_property
    def instruct(self) -> InstructionService:
        """Instructions on facts in words."""
        return InstructionService(self.facts, self.fact_search, self.models.llm)
