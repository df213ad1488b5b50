"""A conversation's last question, answered from a collection: for frontends that only speak of chats."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.core.access_keys import LLM
from app.errors import LlmError, LlmNotConfiguredError
from app.providers.llm import Llm
from app.services.retrieval.fallback import Fallback
from app.services.retrieval.query import Query
from app.services.serving.answer import AnswerService, WordedAnswer

TURNS = 10
"""Earlier turns, the latest, that say what a question is about."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side of a conversation said; ``role`` is ``user`` or ``assistant``."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer in words, and the question as it was asked of the collection."""

    question: str
    answer: WordedAnswer


class ChatService:
    """Answers the last question of a conversation."""

    def __init__(self, answers: AnswerService, llm: Llm | None) -> None:
        self._answers = answers
        self._llm = llm

    def reply(self, query: Query, earlier: Sequence[Turn]) -> Reply:
        """Answer the query; where something was said before it, restated first so that it can be understood alone.

        If the endpoint fails to restate it, the question is asked as it is, and a warning says so.

        Raises:
            LlmNotConfiguredError: no endpoint is configured; nothing is retrieved.
            ForbiddenError: the principal may not use it.
        """
        if self._llm is None:
            raise LlmNotConfiguredError("A chat needs ENGRAM_LLM_BASE_URL to be set.")
        query.scope.need(LLM, "An answer in words")
        question = query.text
        warnings: tuple[Fallback, ...] = ()
        if earlier:
            question, warnings = _restated(self._llm, query.text, earlier[-TURNS:])
        answer = self._answers.answer(replace(query, text=question))
        return Reply(question, replace(answer, warnings=(*warnings, *answer.warnings)))


def _restated(llm: Llm, question: str, earlier: Sequence[Turn]) -> tuple[str, tuple[Fallback, ...]]:
    try:
        return llm.restate_question(question, [(turn.role, turn.text) for turn in earlier]), ()
    except LlmError as error:
        return question, (Fallback("not-restated", error.detail),)
