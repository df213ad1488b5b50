"""Facts: intake, alignment, search and corrections."""

from dataclasses import dataclass

from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.composition.wings import WingHolder
from engram.config.settings import Settings
from engram.storage.database import Database
from engram.wings.facts.services.entity_alignment import AlignmentService
from engram.wings.facts.services.entity_merge import EntityMergeService
from engram.wings.facts.services.fact_instructions import InstructionService
from engram.wings.facts.services.fact_retraction import RetractionService
from engram.wings.facts.services.fact_search import FactSearch
from engram.wings.facts.services.fact_service import FactsService
from engram.wings.facts.services.fact_views import FactViewService
from engram.wings.facts.services.graph_merge import GraphMergeService
from engram.wings.facts.services.predicate_service import PredicatesService
from engram.wings.facts.services.text_facts import TextService


@dataclass(frozen=True, eq=False)
class FactServices:
    """Services of facts. Each is made when first used."""

    settings: Settings
    database: Database
    models: Models

    @locked_property
    def facts(self) -> FactsService:
        """Intake of statements."""
        return FactsService(self.database, self.models.noise, self.alignment)

    @locked_property
    def texts(self) -> TextService:
        """Extraction of facts from text."""
        return TextService(self.models.language, self.models.llm)

    @locked_property
    def fact_search(self) -> FactSearch:
        """Search of facts."""
        return FactSearch(self.database)

    @locked_property
    def views(self) -> FactViewService:
        """Views of facts and their entities."""
        return FactViewService(self.database)

    @locked_property
    def entity_merges(self) -> EntityMergeService:
        """Merges and splits of fact entities."""
        return EntityMergeService(self.database, self.models.noise)

    @locked_property
    def alignment(self) -> AlignmentService:
        """Alignment of entity and predicate names."""
        return AlignmentService(self.database, self.models.encoder)

    @locked_property
    def graph_merges(self) -> GraphMergeService:
        """Merges of fact graphs."""
        return GraphMergeService(self.database, self.models.noise, self.alignment)

    @locked_property
    def retractions(self) -> RetractionService:
        """Retraction of statements."""
        return RetractionService(self.database, self.models.noise)

    @locked_property
    def predicates(self) -> PredicatesService:
        """Settings of predicates."""
        return PredicatesService(self.database)

    @locked_property
    def instructions(self) -> InstructionService:
        """Instructions on facts in words."""
        return InstructionService(self.facts, self.fact_search, self.models.llm)


def facts_of(application: WingHolder) -> FactServices:
    """Return the services of facts of an application.

    Raises:
        LookupError: the wing is off.
    """
    return application.wing(FactServices)
