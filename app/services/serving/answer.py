"""Answering in words: retrieve, let the LLM answer, keep only citations of sentences it was shown."""

from dataclasses import dataclass, replace

from app.core.access_keys import LLM
from app.errors import LlmError, LlmNotConfiguredError
from app.providers.llm import Llm
from app.services.retrieval.answer import Answer
from app.services.retrieval.fallback import Fallback
from app.services.retrieval.query import Query
from app.services.serving.arms import ServingService


@dataclass(frozen=True, slots=True)
class Citation:
    """A sentence that the answer rests on."""

    sentence_id: int
    passage_id: str
    text: str


@dataclass(frozen=True, slots=True)
class WordedAnswer:
    """An answer in words; empty text where the evidence gives none."""

    text: str
    sufficient: bool
    citations: list[Citation]
    retrieval: Answer
    warnings: tuple[Fallback, ...] = ()


class AnswerService:
    """Answers questions in words."""

    def __init__(self, serving: ServingService, llm: Llm | None) -> None:
        self._serving = serving
        self._llm = llm

    def answer(self, query: Query) -> WordedAnswer:
        """Retrieve and answer; if the endpoint fails, there is what was retrieved, and a warning.

        Raises:
            LlmNotConfiguredError: no endpoint is configured; nothing is retrieved.
            ForbiddenError: the principal may not use it.
        """
        if self._llm is None:
            raise LlmNotConfiguredError("POST /answer needs ENGRAM_LLM_BASE_URL to be set.")
        query.scope.need(LLM, "An answer in words")
        retrieval = self._serving.query(replace(query, include=query.include | {"sentences"}))
        shown = {
            sentence.sentence_id: Citation(sentence.sentence_id, passage.passage_id, sentence.text)
            for passage in retrieval.passages
            for sentence in passage.sentences
        }
        try:
            draft = self._llm.answer(query.text, [(key, citation.text) for key, citation in shown.items()])
        except LlmError as error:
            return WordedAnswer("", False, [], retrieval, (Fallback("not-answered", error.detail),))
        return WordedAnswer(draft.text, draft.sufficient, [shown[cited] for cited in draft.cited], retrieval)
