"""Answers to queries: as collections are set, and in words."""

from contextlib import ExitStack
from dataclasses import dataclass

from engram.composition.hooks import Hooks
from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.composition.parts.auth_services import AuthServices
from engram.composition.parts.retrieval_services import RetrievalServices
from engram.config.settings import Settings
from engram.services.answers.joint_answers import JointAnswerService
from engram.services.answers.passage_context import PassageContextService
from engram.services.answers.stored_answers import StoredAnswers
from engram.services.answers.suggestions import SuggestionService
from engram.services.answers.worded_answer import WordedAnswerService
from engram.services.question.pipeline import QuestionPipeline
from engram.storage.database import Database


@dataclass(frozen=True, eq=False)
class AnswerServices:
    """Services that answer queries. Each is made when first used.

    Attributes:
        closing: ends what services of this part have opened.
    """

    settings: Settings
    database: Database
    models: Models
    auth: AuthServices
    retrieval: RetrievalServices
    hooks: Hooks
    closing: ExitStack

    @locked_property
    def question(self) -> QuestionPipeline:
        """Answers to queries."""
        return QuestionPipeline(
            self.database,
            self.auth.reads,
            self.retrieval.retrieve,
            self.hooks.question_rules,
            self.hooks.explainer,
            durable=self.settings.episodes_durable,
        )

    @locked_property
    def episodes(self) -> StoredAnswers:
        """Answered queries, read again."""
        return StoredAnswers(self.database, self.hooks.key_explainer)

    @locked_property
    def context(self) -> PassageContextService:
        """Contexts of the passages of answers."""
        return PassageContextService(self.database, self.auth.reads)

    @locked_property
    def joint(self) -> JointAnswerService:
        """Answers of several collections."""
        joint = JointAnswerService(self.question, self.context)
        self.closing.callback(joint.close)
        return joint

    @locked_property
    def suggestions(self) -> SuggestionService:
        """Completions of what is typed."""
        return SuggestionService(self.database)

    @locked_property
    def answer(self) -> WordedAnswerService:
        """Worded answers."""
        return WordedAnswerService(self.question, self.context, self.models.llm)
