"""Facts of a text, read by rules or by a language model within a budget.

The model is asked before any transaction begins. What it fails, or what the budget does not reach, the rules read,
and whoever asked is told so.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from engram.context.errors import BudgetSpentError, LlmError, LlmNotConfiguredError
from engram.core.knowledge.triples import Triple
from engram.core.planning.session import Budget
from engram.providers.language import Language, PassageText, SentenceAnalysis
from engram.providers.language.facts import extract_facts
from engram.providers.llm import Llm, Usage, facts_by_model, pieces
from engram.services.facts.fact_service import StatedFact

Extraction = Literal["rules", "llm"]
BY_RULES: Extraction = "rules"
BY_LLM: Extraction = "llm"


@dataclass(frozen=True, slots=True)
class ExtractedFacts:
    """Facts of a text.

    Attributes:
        stated: each fact with the sentence that says it.
        by: who read it; "llm" where the model read any of it.
        failed: why the rules read what the model was asked for; empty if it read all.
    """

    stated: Sequence[StatedFact]
    by: Extraction
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
    """Reads facts from texts."""

    def __init__(self, language: Language, llm: Llm | None, extraction: Extraction) -> None:
        """``extraction`` is what reads where a request does not say."""
        self._language = language
        self._llm = llm
        self._extraction = extraction

    def choose_extraction(self, extraction: Extraction | None, *, allowed: bool) -> Extraction:
        """Return the reader of a text: the requested one, else the setting's if the caller may use the model.

        Raises:
            LlmNotConfiguredError: the model is wanted and there is no endpoint.
        """
        if extraction == BY_LLM and self._llm is None:
            raise LlmNotConfiguredError("Facts read by a language model need ENGRAM_LLM_BASE_URL to be set.")
        if extraction is not None:
            return extraction
        return self._extraction if allowed and self._llm is not None else BY_RULES

    def read(
        self, title: str | None, text: str, by: Extraction = BY_RULES, budget: Budget | None = None
    ) -> ExtractedFacts:
        """Read the facts of a text. The model reads long text in pieces; the rules read pieces that it fails.

        No transaction may be open.
        """
        (sentences,) = self._language.analyse_passages([PassageText(title, text)])
        if by == BY_RULES or self._llm is None:
            return ExtractedFacts(_build_stated_facts(extract_facts(title, sentences), sentences), BY_RULES)
        llm = self._llm.attach_meter(Allowance(budget or Budget()))
        found, failed = read_by_model(llm, title, sentences)
        by = BY_RULES if len(failed) == len(pieces(sentences)) else BY_LLM
        return ExtractedFacts(_build_stated_facts(found, sentences), by, list(dict.fromkeys(failed)))


def read_by_model(
    llm: Llm, title: str | None, sentences: Sequence[SentenceAnalysis]
) -> tuple[list[Triple], list[str]]:
    """Read the facts of a passage by the model, piece by piece; return reasons for pieces read by rules."""
    found: list[Triple] = []
    failed: list[str] = []
    ruled: list[Triple] | None = None
    for first, piece in pieces(sentences):
        try:
            found += facts_by_model(llm, title, piece, first)
        except LlmError as error:
            failed.append(error.detail)
            if ruled is None:  # all at once: who "she" is may stand in an earlier piece
                ruled = extract_facts(title, sentences)
            found += [one for one in ruled if first <= one.sentence < first + len(piece)]
    return found, failed


def _build_stated_facts(triples: Sequence[Triple], sentences: Sequence[SentenceAnalysis]) -> list[StatedFact]:
    return [StatedFact(triple, sentences[triple.sentence].text) for triple in triples]
