"""Answers to queries: as collections are set, and in words."""

from dataclasses import dataclass

from engram.composition.hooks import Hooks
from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.composition.parts.auth_services import AuthServices
from engram.composition.parts.retrieval_services import RetrievalServices
from engram.config.settings import Settings
from engram.services.answers.worded_answer import AnswerService
from engram.services.queries.query_service import QueryService
from engram.services.queries.serving_service import ServingService
from engram.storage.database import Database


@dataclass(frozen=True, eq=False)
class AnswerServices:
    """Services that answer queries. Each is made when first used."""

    settings: Settings
    database: Database
    models: Models
    auth: AuthServices
    retrieval: RetrievalServices
    hooks: Hooks

    @locked_property
    def ask(self) -> QueryService:
        """Answers to queries under given arms."""
        settings = self.settings
        return QueryService(
            self.database,
            self.auth.reads,
            self.retrieval.retrieve,
            self.hooks.explainer,
            durable=settings.episodes_durable,
        )

    @locked_property
    def serving(self) -> ServingService:
        """Answers to queries by their collection's settings."""
        return ServingService(self.ask, self.hooks.question_rules)

    @locked_property
    def answer(self) -> AnswerService:
        """Worded answers."""
        return AnswerService(self.serving, self.models.llm)
