"""Answering in words: retrieve, let the LLM answer, keep only citations of sentences it was shown."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engram.context.errors import LlmError, LlmNotConfiguredError
from engram.core.auth.access_keys import LLM
from engram.providers.llm import Llm
from engram.services.answers.chat_question import ChatTurn, restate_question
from engram.services.answers.citations import Citation, quotations
from engram.services.queries.serving_service import ServingService
from engram.services.retrieval.answer import Answer
from engram.services.retrieval.fallbacks import Fallback
from engram.services.retrieval.query import Query


@dataclass(frozen=True, slots=True)
class WordedAnswer:
    """An answer in words; empty text where the evidence gives none.

    ``retrieval`` has the question as it was asked. ``quoted``: no model was asked; the citations are the answer.
    """

    text: str
    sufficient: bool
    citations: list[Citation]
    retrieval: Answer
    warnings: tuple[Fallback, ...] = ()
    quoted: bool = False


class AnswerService:
    """Answers questions in words."""

    def __init__(self, serving: ServingService, llm: Llm | None, *, threshold: float) -> None:
        """``threshold``: probability from which on quoted sentences count as sufficient."""
        self._serving = serving
        self._llm = llm
        self._threshold = threshold

    def answer(self, query: Query, earlier: Sequence[ChatTurn] = ()) -> WordedAnswer:
        """Retrieve and answer; if the endpoint fails, there is what was retrieved, and a warning.

        Where something was said ``earlier``, the question is restated first, so that it can be understood alone.

        Raises:
            LlmNotConfiguredError: no endpoint is configured; nothing is retrieved.
            ForbiddenError: the principal may not use it.
        """
        if self._llm is None:
            raise LlmNotConfiguredError("An answer in words needs ENGRAM_LLM_BASE_URL to be set.")
        return self._answer_in_words(self._llm, query, earlier)

    def chat(self, query: Query, earlier: Sequence[ChatTurn] = ()) -> WordedAnswer:
        """Answer as ``answer`` does; where no endpoint is configured, quote the sentences that were found.

        Without an endpoint nothing is restated: the question is asked as it stands, and a warning says so.

        Raises:
            ForbiddenError: there is an endpoint, and the principal may not use it.
        """
        if self._llm is not None:
            return self._answer_in_words(self._llm, query, earlier)
        warnings = (Fallback("not-restated", "No language model is configured."),) if earlier else ()
        retrieval = self._serving.query(query)
        return WordedAnswer(
            "",
            retrieval.sufficiency is not None and retrieval.sufficiency >= self._threshold,
            quotations(retrieval),
            retrieval,
            warnings,
            quoted=True,
        )

    def _answer_in_words(self, llm: Llm, query: Query, earlier: Sequence[ChatTurn]) -> WordedAnswer:
        query.scope.need(LLM, "An answer in words")
        question, warnings = restate_question(llm, query.text, earlier)
        grounded_query = replace(query, text=question, include=query.include | {"sentences"})
        retrieval = self._serving.query(grounded_query)
        sentences = {
            sentence.sentence_id: Citation(sentence.sentence_id, passage.passage_id, sentence.text)
            for passage in retrieval.passages
            for sentence in passage.sentences
        }
        try:
            draft = llm.answer(question, [(key, citation.text) for key, citation in sentences.items()])
        except LlmError as error:
            return WordedAnswer("", False, [], retrieval, (*warnings, Fallback("not-answered", error.detail)))
        cited = [sentences[key] for key in draft.cited]
        return WordedAnswer(draft.text, draft.sufficient, cited, retrieval, warnings)
