"""Answering in words: retrieve, let the LLM answer, keep only citations of sentences it was shown."""

from dataclasses import dataclass, replace

from engram.context.errors import LlmError, LlmNotConfiguredError
from engram.core.auth.access_keys import LLM
from engram.core.text.passage_source import PassageSource
from engram.providers.llm import Llm
from engram.services.answers.passage_context import PassageContextService
from engram.services.question.answer import Answer, PassageAnswer, SurroundingPassage
from engram.services.question.pipeline import QuestionPipeline
from engram.services.question.query import Fallback, Query


@dataclass(frozen=True, slots=True)
class Citation:
    """A sentence that an answer rests on."""

    sentence_id: int
    passage_id: str
    text: str
    source: PassageSource


@dataclass(frozen=True, slots=True)
class WordedAnswer:
    """An answer in words; empty text where the evidence gives none.

    ``retrieval`` has the question as it was asked.
    """

    text: str
    sufficient: bool
    citations: list[Citation]
    retrieval: Answer
    warnings: tuple[Fallback, ...] = ()


class WordedAnswerService:
    """Answers questions in words."""

    def __init__(self, question: QuestionPipeline, context: PassageContextService, llm: Llm | None) -> None:
        self._question = question
        self._context = context
        self._llm = llm

    def answer(self, query: Query) -> WordedAnswer:
        """Retrieve and answer; if the endpoint fails, there is what was retrieved, and a warning.

        The model also reads what stands around the passages, if the query asks for that.

        Raises:
            LlmNotConfiguredError: no endpoint is configured; nothing is retrieved.
            ForbiddenError: the principal may not use it.
        """
        if self._llm is None:
            raise LlmNotConfiguredError("An answer in words needs ENGRAM_LLM_BASE_URL to be set.")
        query.scope.need(LLM, "An answer in words")
        query = replace(query, include=query.include | {"sentences"})
        retrieval = self._context.add(query, self._question.serve(query))
        sentences = {
            sentence.sentence_id: Citation(sentence.sentence_id, passage.passage_id, sentence.text, passage.source)
            for hit in retrieval.passages
            for passage in _list_read(hit)
            for sentence in passage.sentences
        }
        try:
            draft = self._llm.answer(query.text, [(key, citation.text) for key, citation in sentences.items()])
        except LlmError as error:
            return WordedAnswer("", False, [], retrieval, (Fallback("not-answered", error.detail),))
        cited = [sentences[key] for key in draft.cited]
        return WordedAnswer(draft.text, draft.sufficient, cited, retrieval)


def _list_read(hit: PassageAnswer) -> list[PassageAnswer | SurroundingPassage]:
    """List a passage and what stands around it, in reading order."""
    return [hit] if hit.context is None else [*hit.context.before, hit, *hit.context.after]
