"""Answers to queries: by arm, compared, worded, and as rankings of the caller's texts."""

from dataclasses import dataclass

from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.composition.parts.auth_services import AuthServices
from engram.composition.parts.retrieval_services import RetrievalServices
from engram.config.settings import Settings
from engram.services.answers.reranking import RerankingService
from engram.services.answers.worded_answer import AnswerService
from engram.services.experiments.arm_comparison import ComparisonService
from engram.services.experiments.experiment_arms import ServingService
from engram.services.experiments.measured_lift import LiftService
from engram.services.explanations.verdict_influence import Influences
from engram.services.queries.query_service import QueryService
from engram.storage.database import Database


@dataclass(frozen=True, eq=False)
class AnswerServices:
    """Services that answer queries. Each is made when first used."""

    settings: Settings
    database: Database
    models: Models
    auth: AuthServices
    retrieval: RetrievalServices

    @locked_property
    def ask(self) -> QueryService:
        """Answers to queries under given arms."""
        settings = self.settings
        influences = Influences(self.models.priors, self.retrieval.question_spreads)
        return QueryService(
            self.database,
            self.auth.reads,
            self.retrieval.retrieve,
            influences,
            durable=settings.episodes_durable,
        )

    @locked_property
    def serving(self) -> ServingService:
        """Answers to queries by their collection's settings."""
        return ServingService(self.ask)

    @locked_property
    def lift(self) -> LiftService:
        """Comparison of experiment arms."""
        return LiftService(self.database, generation_threshold=self.settings.passage_key_generation_threshold)

    @locked_property
    def compare(self) -> ComparisonService:
        """Comparison of one query under two arms."""
        return ComparisonService(self.auth.reads, self.retrieval.retrieve)

    @locked_property
    def answer(self) -> AnswerService:
        """Worded answers."""
        return AnswerService(self.serving, self.models.llm, threshold=self.settings.sufficiency_threshold)

    @locked_property
    def rerank(self) -> RerankingService:
        """Ranking of texts that callers bring."""
        return RerankingService(self.database, self.models.encoder, self.serving)
