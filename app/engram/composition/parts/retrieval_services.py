"""Retrieval: from a question to ranked evidence."""

from dataclasses import dataclass

from engram.composition.hooks import Hooks
from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.config.settings import Settings
from engram.services.key_search.dense_search import DenseService
from engram.services.maintenance.level_measurement import LevelMeasurement
from engram.services.question.caches import GraphCache, PassageKeyCache, VisibleLanguages
from engram.services.question.plan import QueryPlanner
from engram.services.question.question_spreads import QuestionSpreads
from engram.services.question.reranking import PassageReranker
from engram.services.question.search import RetrievalService
from engram.storage.database import Database

SUFFICIENCY_THRESHOLD = 0.97
"""With ``stop_rule`` "learned", hops end once the answer is enough with this probability."""
RERANKER_CANDIDATES = 32
"""Best candidates that the reranker reads for one question."""
RERANKER_SECONDS = 0.5
"""How long the reranker may take for one question; then the ranking without it answers."""


@dataclass(frozen=True, eq=False)
class RetrievalServices:
    """Services that find evidence. Each is made when first used."""

    settings: Settings
    database: Database
    models: Models
    hooks: Hooks

    @locked_property
    def languages(self) -> VisibleLanguages:
        """Languages of passages, as callers see them."""
        return VisibleLanguages(self.database)

    @locked_property
    def planner(self) -> QueryPlanner:
        """Analysis and embedding of questions."""
        settings, models = self.settings, self.models
        return QueryPlanner(
            self.database,
            self.languages,
            models.encoder,
            models.language,
            models.limits,
            models.llm,
            time_llm=models.llm if settings.llm_time_extraction else None,
            question_encoder=self.hooks.question_encoder,
            retrievers=self.hooks.retrievers,
        )

    @locked_property
    def key_cache(self) -> PassageKeyCache:
        """Passage keys held in this process."""
        return PassageKeyCache(self.settings.passage_key_cache_mb * 2**20)

    @locked_property
    def graph_cache(self) -> GraphCache:
        """Names, texts and terms held in this process."""
        return GraphCache(self.settings.passage_key_cache_mb * 2**20)

    @locked_property
    def question_spreads(self) -> QuestionSpreads:
        """Spreads of collections' questions, as this process measured them."""
        return QuestionSpreads(lambda: self.models.language)

    @locked_property
    def retrieve(self) -> RetrievalService:
        """Retrieval of evidence."""
        return self._build_retrieval(self._passage_reranker())

    @locked_property
    def retrieve_unreranked(self) -> RetrievalService:
        """Retrieval that asks no reranker, for whoever asks many questions in a row."""
        return self._build_retrieval(None)

    @locked_property
    def levels(self) -> LevelMeasurement:
        """Measurement of the levels of collections."""
        models = self.models
        return LevelMeasurement(
            self.database, lambda: self.retrieve_unreranked, lambda: models.priors, lambda: models.encoder
        )

    def _build_retrieval(self, reranker: PassageReranker | None) -> RetrievalService:
        return RetrievalService(
            self.database,
            self.planner,
            self.models.priors,
            self.key_cache,
            self.graph_cache,
            self.question_spreads,
            threshold=SUFFICIENCY_THRESHOLD,
            reranker=reranker,
            rules=self.hooks.question_rules,
        )

    def _passage_reranker(self) -> PassageReranker | None:
        """Client of the configured reranker, or None."""
        reranker = self.models.reranker
        if reranker is None:
            return None
        return PassageReranker(reranker, candidates=RERANKER_CANDIDATES, seconds=RERANKER_SECONDS)

    @locked_property
    def dense(self) -> DenseService:
        """Plain dense retrieval."""
        return DenseService(self.database, self.models.encoder)
