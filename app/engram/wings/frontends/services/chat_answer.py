"""Answers in a chat: in words where a language model is configured, else as quotations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engram.context.errors import LlmError
from engram.core.auth.access_keys import LLM
from engram.core.ranking.cosine_scale import rescale_cosines
from engram.core.text.temporal import time_constraint
from engram.providers.language import content_terms
from engram.providers.llm import Llm
from engram.services.answers.worded_answer import Citation, WordedAnswer, WordedAnswerService
from engram.services.encoders.encoder import Encoder
from engram.services.question.answer import Answer
from engram.services.question.query import Fallback, Query
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database
from engram.wings.frontends.llm.restatement import restate
from engram.wings.frontends.services.chat_phrases import ChatPhrases, find_phrases
from engram.wings.frontends.services.long_questions import LongQuestions
from engram.wings.frontends.services.quotations import Quotation, Quotations, quote
from engram.wings.frontends.storage import sentence_likeness

Warnings = tuple[Fallback, ...]

TURNS = 10
"""Earlier turns, the latest, that say what a question is about."""
LEAST_PROBABILITY = 0.15
"""Probability that the quotes hold the answer, below which the chat says that it finds none.

One right answer in twenty of the documentation and the support forum of ``evaluation_sets`` has a lower one.
"""


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """Turn of a conversation; ``role`` is ``user`` or ``assistant``."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """An answer in a chat.

    ``phrases``: in the language of the question as it was asked. ``quotes``: what answers where no model was asked,
    the best first; empty if the collection has no answer. None: a model was asked.
    """

    worded: WordedAnswer
    phrases: ChatPhrases
    quotes: Sequence[Quotation] | None = None


class ChatService:
    """Answers the last question of a conversation."""

    def __init__(
        self,
        database: Database,
        encoder: Encoder,
        answers: WordedAnswerService,
        questions: LongQuestions,
        llm: Llm | None,
    ) -> None:
        self._database = database
        self._encoder = encoder
        self._answers = answers
        self._questions = questions
        self._llm = llm

    def answer(self, query: Query, earlier: Sequence[ChatTurn] = (), warnings: Warnings = ()) -> ChatAnswer:
        """Answer in words; where no endpoint is configured, quote the sentences that answer best.

        Where something was said ``earlier``, the model restates the question first, so that it can be understood
        alone. Without an endpoint the question is asked as it stands, and a warning says so.

        Args:
            warnings: of what was not read of the question.

        Raises:
            ForbiddenError: there is an endpoint, and the principal may not use it.
        """
        if self._llm is None:
            if earlier:
                warnings = (*warnings, Fallback("not-restated", "No language model is configured."))
            return self._quote(query, warnings)
        query.scope.need(LLM, "An answer in words")
        query, shortened = self._questions.fit(query)
        question, not_restated = _restate(self._llm, query.text, earlier)
        worded = self._answers.answer(replace(query, text=question))
        warnings = (*warnings, *shortened, *not_restated, *worded.warnings)
        return ChatAnswer(replace(worded, warnings=warnings), _find_phrases(query.text, worded.retrieval))

    def _quote(self, query: Query, warnings: Warnings) -> ChatAnswer:
        """Quote what answers; nothing where the answer is withheld or the quotes probably do not hold it.

        A query that names its own ``min_sufficiency`` has quotes wherever that is reached.
        """
        level = "auto" if query.min_sufficiency is None else query.min_sufficiency
        retrieval = self._questions.serve(
            replace(query, min_sufficiency=level, include=query.include | {"sentences"})
        )
        quotations = self._choose_quotes(query.scope.collection, retrieval)
        quotes = quotations.quotes
        if level == "auto" and quotations.probability is not None and quotations.probability < LEAST_PROBABILITY:
            quotes = ()
        cited = [
            Citation(one.sentence.sentence_id, one.passage.passage_id, one.sentence.text, one.passage.source)
            for one in quotes
        ]
        warnings = (*warnings, *retrieval.warnings)
        worded = WordedAnswer("", bool(quotes), cited, retrieval, warnings)
        return ChatAnswer(worded, _find_phrases(query.text, retrieval), quotes)

    def _choose_quotes(self, collection: Collection, retrieval: Answer) -> Quotations:
        sentences = [one.sentence_id for passage in retrieval.passages for one in passage.sentences]
        if not sentences:
            return Quotations((), None)
        vector = self._encoder.embed_questions(collection, [retrieval.query])[0]
        with self._database.snapshot() as reader:
            cosines = sentence_likeness.compare(reader, collection.id, vector, sentences)
        rescaled = rescale_cosines(
            np.array(list(cosines.values())), self._encoder.measure_unrelated_cosine(collection)
        )
        similarities = dict(zip(cosines, rescaled.tolist(), strict=True))
        by_language = {
            language: frozenset(content_terms(retrieval.query, language))
            for language in {passage.language for passage in retrieval.passages}
        }
        return quote(retrieval, by_language, similarities, time_constraint(retrieval.query))


def _find_phrases(question: str, retrieval: Answer) -> ChatPhrases:
    return find_phrases(question, {passage.language for passage in retrieval.passages})


def _restate(llm: Llm, question: str, earlier: Sequence[ChatTurn]) -> tuple[str, tuple[Fallback, ...]]:
    """Restate the question; if the endpoint fails, it stays as it is, and a warning says so."""
    if not earlier:
        return question, ()
    try:
        return restate(llm, question, [(turn.role, turn.text) for turn in earlier[-TURNS:]]), ()
    except LlmError as error:
        return question, (Fallback("not-restated", error.detail),)
