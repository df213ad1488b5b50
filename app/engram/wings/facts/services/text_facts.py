"""Facts of a text, read by the language model within a budget.

The model is asked before any transaction begins. What it fails, or what the budget does not reach, is left out, and
whoever asked is told so.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from engram.context.errors import BudgetSpentError, LlmError, LlmNotConfiguredError
from engram.core.budget import Budget
from engram.providers.language import Language, PassageText, SentenceAnalysis
from engram.providers.llm import Llm, Usage
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.llm import facts_by_model, pieces
from engram.wings.facts.services.fact_service import StatedFact


@dataclass(frozen=True, slots=True)
class ExtractedFacts:
    """Facts of a text.

    Attributes:
        stated: each fact with the sentence that says it.
        failed: why pieces of the text were left out; empty if the model read all.
    """

    stated: Sequence[StatedFact]
    failed: Sequence[str] = ()


class Allowance:
    """Counts what calls of one request take, and refuses those beyond its budget."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._usage = Usage()

    def check(self) -> None:
        """Whether one more call is affordable.

        Raises:
            BudgetSpentError: it is not.
        """
        with self._lock:
            used = self._usage
        spent = {
            "llm_calls": used.calls >= self._budget.llm_calls,
            "tokens": used.prompt_tokens + used.completion_tokens >= self._budget.tokens,
            "seconds": time.monotonic() - self._began >= self._budget.seconds,
        }
        for reason, over in spent.items():
            if over:
                budget_name = reason.replace("_", " ")
                raise BudgetSpentError(f"The request's budget of {budget_name} is spent.", reason=reason)

    def measure_remaining_seconds(self) -> float:
        """Return the rest of the request's budget of seconds."""
        return self._budget.seconds - (time.monotonic() - self._began)

    def add(self, usage: Usage) -> None:
        """Count what a call took."""
        with self._lock:
            self._usage += usage


class TextService:
    """Reads facts from texts by the language model."""

    def __init__(self, language: Language, llm: Llm | None) -> None:
        self._language = language
        self._llm = llm

    def require_model(self) -> Llm:
        """Return the model.

        Raises:
            LlmNotConfiguredError: there is no endpoint.
        """
        if self._llm is None:
            raise LlmNotConfiguredError(
                "Facts are read from text by a language model: set ENGRAM_LLM_BASE_URL, or send `facts`."
            )
        return self._llm

    def read(self, title: str | None, text: str, budget: Budget | None = None) -> ExtractedFacts:
        """Read the facts of a text, a long one in pieces; leave out the pieces that the model fails.

        No transaction may be open.

        Raises:
            LlmNotConfiguredError: there is no endpoint.
            LlmError: the model failed every piece.
        """
        llm = self.require_model().attach_meter(Allowance(budget or Budget()))
        (sentences,) = self._language.analyse_passages([PassageText(title, text)])
        found, failed = read_by_model(llm, title, sentences)
        if failed and len(failed) == len(pieces(sentences)):
            raise failed[0]
        stated = [StatedFact(triple, sentences[triple.sentence].text) for triple in found]
        return ExtractedFacts(stated, list(dict.fromkeys(error.detail for error in failed)))


def read_by_model(
    llm: Llm, title: str | None, sentences: Sequence[SentenceAnalysis]
) -> tuple[list[Triple], list[LlmError]]:
    """Read the facts of a passage by the model, piece by piece; return the errors of pieces that it failed too."""
    found: list[Triple] = []
    failed: list[LlmError] = []
    for first, piece in pieces(sentences):
        try:
            found += facts_by_model(llm, title, piece, first)
        except LlmError as error:
            failed.append(error)
    return found, failed
