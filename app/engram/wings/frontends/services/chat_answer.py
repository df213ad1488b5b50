"""Answers in a chat: in words where a language model is configured, else as quotations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engram.context.errors import LlmError
from engram.core.auth.access_keys import LLM
from engram.providers.llm import Llm
from engram.services.answers.worded_answer import AnswerService, WordedAnswer
from engram.services.pipelines.question import QuestionPipeline
from engram.services.retrieval.fallbacks import Fallback
from engram.services.retrieval.query import Query
from engram.wings.frontends.llm.restatement import restate
from engram.wings.frontends.services.quotations import quotations

TURNS = 10
"""Earlier turns, the latest, that say what a question is about."""


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """Turn of a conversation; ``role`` is ``user`` or ``assistant``."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """An answer in a chat. ``quoted``: no model was asked, and the citations are the answer."""

    worded: WordedAnswer
    quoted: bool


class ChatService:
    """Answers the last question of a conversation."""

    def __init__(
        self, answers: AnswerService, question: QuestionPipeline, llm: Llm | None, *, threshold: float
    ) -> None:
        """``threshold``: probability from which on quoted sentences count as sufficient."""
        self._answers = answers
        self._question = question
        self._llm = llm
        self._threshold = threshold

    def answer(self, query: Query, earlier: Sequence[ChatTurn] = ()) -> ChatAnswer:
        """Answer in words; where no endpoint is configured, quote the sentences that were found.

        Where something was said ``earlier``, the model restates the question first, so that it can be understood
        alone. Without an endpoint the question is asked as it stands, and a warning says so.

        Raises:
            ForbiddenError: there is an endpoint, and the principal may not use it.
        """
        if self._llm is None:
            return self._quote(query, earlier)
        query.scope.need(LLM, "An answer in words")
        question, warnings = _restate(self._llm, query.text, earlier)
        worded = self._answers.answer(replace(query, text=question))
        return ChatAnswer(replace(worded, warnings=(*warnings, *worded.warnings)), quoted=False)

    def _quote(self, query: Query, earlier: Sequence[ChatTurn]) -> ChatAnswer:
        warnings = (Fallback("not-restated", "No language model is configured."),) if earlier else ()
        retrieval = self._question.serve(query)
        sufficient = retrieval.sufficiency is not None and retrieval.sufficiency >= self._threshold
        return ChatAnswer(WordedAnswer("", sufficient, quotations(retrieval), retrieval, warnings), quoted=True)


def _restate(llm: Llm, question: str, earlier: Sequence[ChatTurn]) -> tuple[str, tuple[Fallback, ...]]:
    """Restate the question; if the endpoint fails, it stays as it is, and a warning says so."""
    if not earlier:
        return question, ()
    try:
        return restate(llm, question, [(turn.role, turn.text) for turn in earlier[-TURNS:]]), ()
    except LlmError as error:
        return question, (Fallback("not-restated", error.detail),)
