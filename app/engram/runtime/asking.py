"""The part of the application that answers: who asks, retrieval, serving, facts."""

from collections.abc import Callable
from functools import cached_property

from engram.runtime.upkeeping import Upkeep
from engram.services.auth.access_key_service import KeysService
from engram.services.auth.authentication import Authentication
from engram.services.auth.quotas import QuotaService
from engram.services.auth.scope import AccessService
from engram.services.explanations.verdict_influence import Influences
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
from engram.services.retrieval.dense_search import DenseService
from engram.services.retrieval.passage_key_cache import PassageKeyCache
from engram.services.retrieval.pool_classifier import PoolClassifier
from engram.services.retrieval.query_expansion import ExpandService
from engram.services.retrieval.query_plan import QueryPlanner
from engram.services.retrieval.retrieval_service import RetrieveService
from engram.services.serving.arm_comparison import CompareService
from engram.services.serving.experiment_arms import ServingService
from engram.services.serving.measured_lift import LiftService
from engram.services.serving.query_service import AskService
from engram.services.serving.worded_answer import AnswerService


class Asking(Upkeep):
    """Access, retrieval, serving, and facts."""

    @cached_property
    def access(self) -> AccessService:
        """Finds collections by their names."""
        return AccessService(self.database)

    @cached_property
    def authentication(self) -> Authentication:
        """Tells whose requests are."""
        settings = self.settings
        needed = settings.access == "keys" or (settings.access == "auto" and not settings.on_loopback)
        return Authentication(
            self.database, needed=needed, remember_seconds=settings.access_remember_seconds, tokens=self.tokens
        )

    @cached_property
    def access_keys(self) -> KeysService:
        """Makes access keys and takes them back."""
        return KeysService(self.database, self.access_changed)

    def follow_access(self) -> Callable[[], None]:
        """Hear at once of keys that count no more; what ends that."""
        return self.notices.listen(self.authentication.forget)

    @cached_property
    def quotas(self) -> QuotaService:
        """Counts what tenants take."""
        return QuotaService(self.database, remember_seconds=self.settings.access_remember_seconds)

    def check_access(self) -> None:
        """See that whoever reaches the port does not reach everything without being told so.

        Raises:
            ConfigurationError: it would be so.
        """
        if self.settings.access == "auto":
            self.authentication.check_start(self.settings.host)
        if self.settings.row_security:
            self.database.check_row_security()

    @cached_property
    def planner(self) -> QueryPlanner:
        """Analyses and embeds questions."""
        settings = self.settings
        return QueryPlanner(
            self.encoder,
            self.language,
            self.limits,
            settings.recall_gate,
            self.llm,
            llm_times=settings.llm_time_extraction,
            collapse_duplicates=settings.collapse_duplicates,
        )

    @cached_property
    def kept_keys(self) -> PassageKeyCache:
        """Keys that are searched in this process."""
        return PassageKeyCache(self.settings.keys_memory_mb * 2**20)

    @cached_property
    def retrieve(self) -> RetrieveService:
        """Finds what questions ask for."""
        return RetrieveService(
            self.database,
            self.planner,
            self.priors,
            self.kept_keys,
            self.llm,
            threshold=self.settings.sufficiency_threshold,
            classifier=lambda: self.classifier,
        )

    @cached_property
    def classifier(self) -> PoolClassifier:
        """Tells evidence that suffices, as published."""
        return PoolClassifier(self.language, self.encoder, self.relevance, self.stop_weights)

    @cached_property
    def ask(self) -> AskService:
        """Answers queries as they were asked."""
        influences = Influences(self.priors, self.settings.recall_gate)
        return AskService(
            self.database, self.reads, self.retrieve, influences, durable=self.settings.episodes_durable
        )

    @cached_property
    def serving(self) -> ServingService:
        """Serves queries by their collection's settings."""
        return ServingService(self.database, self.ask)

    @cached_property
    def lift(self) -> LiftService:
        """Compares the arms of experiments."""
        return LiftService(self.database, generation_threshold=self.settings.key_generation_threshold)

    @cached_property
    def facts(self) -> FactsService:
        """Takes in what is said of facts."""
        return FactsService(self.database, self.language, self.noise, self.align)

    @cached_property
    def texts(self) -> TextService:
        """Reads facts from texts."""
        return TextService(self.language, self.llm, self.settings.facts_extraction)

    @cached_property
    def fact_search(self) -> FactSearch:
        """Searches facts."""
        return FactSearch(self.database)

    @cached_property
    def show(self) -> ShowService:
        """Shows facts and their entities."""
        return ShowService(self.database)

    @cached_property
    def join(self) -> JoinService:
        """Merges and splits entities of facts."""
        return JoinService(self.database, self.noise)

    @cached_property
    def align(self) -> AlignService:
        """Joins names of facts that mean the same."""
        return AlignService(self.database, self.encoder)

    @cached_property
    def adopt(self) -> AdoptService:
        """Merges graphs of facts."""
        return AdoptService(self.database, self.noise, self.align)

    @cached_property
    def withdraw(self) -> WithdrawService:
        """Takes back what was said of facts."""
        return WithdrawService(self.database, self.noise)

    @cached_property
    def predicates(self) -> PredicatesService:
        """Says which predicates are functional."""
        return PredicatesService(self.database)

    @cached_property
    def instruct(self) -> InstructService:
        """Carries out instructions on facts."""
        return InstructService(self.facts, self.fact_search, self.llm)

    @cached_property
    def dense(self) -> DenseService:
        """Plain dense retrieval."""
        return DenseService(self.database, self.encoder)

    @cached_property
    def expand(self) -> ExpandService:
        """Widens questions."""
        return ExpandService(self.database, self.encoder, self.limits, self.llm)

    @cached_property
    def compare(self) -> CompareService:
        """Asks under two arms."""
        return CompareService(self.reads, self.retrieve)

    @cached_property
    def answer(self) -> AnswerService:
        """Answers in words."""
        return AnswerService(self.serving, self.llm)
