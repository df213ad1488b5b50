"""Times of sentences by the LLM, and by rules where it fails."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import structlog

from engram.context.errors import LlmError, LlmRefusalError
from engram.providers.language import SentenceAnalysis
from engram.providers.llm import Llm

FIRST_PAUSE_SECONDS = 60.0
"""Time for which an endpoint that failed is not called. It doubles with every failure in a row."""
LONGEST_PAUSE_SECONDS = 3600.0
REFUSALS_IN_A_ROW = 10
"""Refusals and unusable replies after which the endpoint counts as failed: it is no single sentence's fault."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class TimesByRules:
    """Sentences whose time the rules found because the LLM failed.

    Attributes:
        sentences: how many.
        detail: how the LLM failed on the last of them.
    """

    sentences: int = 0
    detail: str = ""

    def add(self, detail: str) -> None:
        """Count one more sentence."""
        self.sentences += 1
        self.detail = detail


class TimeExtraction:
    """Extracts times with the LLM. One failed sentence keeps the time that rules found.

    An endpoint that is away is left alone for a while, so that an ingest does not wait for it at every sentence. A
    refusal or an unusable reply is about one sentence. The next one is tried, unless many in a row were refused.
    """

    def __init__(self, llm: Llm) -> None:
        self._llm = llm
        self._pause_seconds = FIRST_PAUSE_SECONDS
        self._paused_until = 0.0
        self._failure = ""
        self._refusals = 0

    def date_sentences(
        self, sentences: Sequence[SentenceAnalysis], by_rules: TimesByRules
    ) -> list[SentenceAnalysis]:
        """Give each sentence its time; sentences that the rules keep are counted in ``by_rules``."""
        return [self._date_sentence(sentence, by_rules) for sentence in sentences]

    def _date_sentence(self, sentence: SentenceAnalysis, by_rules: TimesByRules) -> SentenceAnalysis:
        if time.monotonic() < self._paused_until:
            by_rules.add(self._failure)
            return sentence
        try:
            time_expression = self._llm.extract_time_constraint(sentence.text)
        except LlmError as error:
            by_rules.add(error.detail)
            self._refusals += 1
            if not isinstance(error, LlmRefusalError) or self._refusals >= REFUSALS_IN_A_ROW:
                self._pause(error.detail)
            return sentence
        self._pause_seconds, self._refusals = FIRST_PAUSE_SECONDS, 0
        return replace(sentence, time_expression=time_expression)

    def _pause(self, failure: str) -> None:
        log.warning("times by rules", reason=failure, seconds=self._pause_seconds)
        self._failure = failure
        self._paused_until = time.monotonic() + self._pause_seconds
        self._pause_seconds = min(2 * self._pause_seconds, LONGEST_PAUSE_SECONDS)
