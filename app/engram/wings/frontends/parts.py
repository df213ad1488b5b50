"""Services of the wing."""

from dataclasses import dataclass

from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.composition.parts.answer_services import AnswerServices
from engram.config.settings import Settings
from engram.storage.database import Database
from engram.wings.frontends.services.chat_answer import ChatService
from engram.wings.frontends.services.long_questions import LongQuestions
from engram.wings.frontends.services.pull_ledger import PullLedger
from engram.wings.frontends.services.reranking import RerankingService


@dataclass(frozen=True, eq=False)
class FrontendServices:
    """Services that other products' clients use. Each is made when first used."""

    settings: Settings
    database: Database
    models: Models
    answers: AnswerServices

    @locked_property
    def long_questions(self) -> LongQuestions:
        """Answers to questions of any length."""
        return LongQuestions(self.models.encoder, self.answers.question)

    @locked_property
    def chat(self) -> ChatService:
        """Answers in a chat."""
        return ChatService(
            self.database,
            self.models.encoder,
            self.answers.answer,
            self.long_questions,
            self.models.llm,
        )

    @locked_property
    def rerank(self) -> RerankingService:
        """Ranking of texts that callers bring."""
        return RerankingService(self.database, self.models.encoder, self.answers.question)

    @locked_property
    def pulls(self) -> PullLedger:
        """Ledger of pulls: the scores of other products that were sent."""
        return PullLedger(self.database)
