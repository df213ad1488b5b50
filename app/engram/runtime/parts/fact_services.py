"""Facts: intake, alignment, search and corrections."""

from dataclasses import dataclass
from functools import cached_property

from engram.config.settings import Settings
from engram.runtime.models import Models
from engram.services.facts.entity_alignment import AlignService
from engram.services.facts.entity_merge import JoinService
from engram.services.facts.fact_instructions import InstructService
from engram.services.facts.fact_retraction import WithdrawService
from engram.services.facts.fact_search import FactSearch
from engram.services.facts.fact_service import FactsService
from engram.services.facts.fact_views import ShowService
from engram.services.facts.graph_merge import AdoptService
from engram.services.facts.predicate_service import PredicatesService
from engram.services.facts.text_facts import TextService
from engram.storage.database import Database


@dataclass(frozen=True, eq=False)
class FactServices:
    """Services of facts. Each is made when first used."""

    settings: Settings
    database: Database
    models: Models

    @cached_property
    def facts(self) -> FactsService:
        """Intake of statements."""
        return FactsService(self.database, self.models.language, self.models.noise, self.align)

    @cached_property
    def texts(self) -> TextService:
        """Extraction of facts from text."""
        return TextService(self.models.language, self.models.llm, self.settings.facts_extraction)

    @cached_property
    def fact_search(self) -> FactSearch:
        """Search of facts."""
        return FactSearch(self.database)

    @cached_property
    def show(self) -> ShowService:
        """Views of facts and their entities."""
        return ShowService(self.database)

    @cached_property
    def join(self) -> JoinService:
        """Merges and splits of fact entities."""
        return JoinService(self.database, self.models.noise)

    @cached_property
    def align(self) -> AlignService:
        """Alignment of entity and predicate names."""
        return AlignService(self.database, self.models.encoder)

    @cached_property
    def adopt(self) -> AdoptService:
        """Merges of fact graphs."""
        return AdoptService(self.database, self.models.noise, self.align)

    @cached_property
    def withdraw(self) -> WithdrawService:
        """Retraction of statements."""
        return WithdrawService(self.database, self.models.noise)

    @cached_property
    def predicates(self) -> PredicatesService:
        """Settings of predicates."""
        return PredicatesService(self.database)

    @cached_property
    def instruct(self) -> InstructService:
        """Instructions on facts in words."""
        return InstructService(self.facts, self.fact_search, self.models.llm)
