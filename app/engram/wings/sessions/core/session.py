"""A session: one question that takes several rounds, with what it found, what it cost and why it stopped.

The evidence pool holds verbatim sentences of passages and nothing else; what a planner makes of them are notes,
each of which cites sentences of the pool.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from engram.core.budget import Budget

Status = Literal["running", "stopped", "cancelled", "failed"]
"""``stopped`` is the end of all that went well; a round that is asked for has it run again."""
StopRule = Literal["planner", "sufficiency", "covered", "published", "llm", "rounds"]
"""What may stop a session before its budget does; ``planner``: what its planner goes by; ``published``: the
classifier of RFM-RAG (``feedback_stop``); ``rounds``: nothing.
"""
StopReason = Literal[
    "sufficiency",
    "covered",
    "found",
    "answered",
    "sufficient",
    "not_found",
    "no_gap",
    "nothing_new",
    "asked",
    "rounds",
    "llm_calls",
    "tokens",
    "seconds",
    "passages",
    "cancelled",
    "failed",
    "erased",
]
"""Why it stopped. ``sufficiency``: the best passages hold all the evidence, by the learned sense of that.
``covered``: by the rule of that name, the pool names every content word of the question. ``found``: nothing is left
to ask, and what was read seems to have the answer. ``not_found``: nothing is left to ask, and what was read does
not seem to have the answer. ``answered``: an LLM says that the pool answers the question. ``sufficient``: the
published classifier says that the pool suffices. ``no_gap``: nothing is known to ask for. ``nothing_new``: a round
found nothing that was not there. ``asked``: it did the rounds that its caller asked for. ``erased``: a passage that
it had read was deleted. The rest are budgets that are spent, or what became of its job.
"""
NoteKind = Literal["binding", "fact", "contradiction", "answer"]


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a session or a round; see ``Budget``."""

    rounds: int = 0
    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    passages: int = 0

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


def find_exhausted_limit(budget: Budget, cost: Cost) -> StopReason | None:
    """Return the first exhausted limit, in the order of ``Budget``; None while the session may go on.

    A budget of no LLM calls or tokens is none: it leaves the session to rules, and stops nothing.
    """
    if cost.rounds >= budget.rounds:
        return "rounds"
    if 0 < budget.llm_calls <= cost.llm_calls:
        return "llm_calls"
    if 0 < budget.tokens <= cost.tokens:
        return "tokens"
    if cost.seconds >= budget.seconds:
        return "seconds"
    return "passages" if cost.passages >= budget.passages else None


@dataclass(frozen=True, slots=True)
class Gap:
    """Missing part of the evidence pool.

    Attributes:
        text: in words.
        triple: subject, relation and object, unknowns as ``?1``; None where it is not known as one.
    """

    text: str
    triple: tuple[str, str, str] | None = None


@dataclass(frozen=True, slots=True)
class PoolSentence:
    """A sentence of the evidence pool: found when, by which query, filling which gap.

    Attributes:
        sentence_id, passage_id: ids, inside the collection.
        text: verbatim, as the passage has it.
        round: in which it was found, from 1.
        query: position among the round's queries; None where the caller brought it.
        gap: what it fills, as far as that is known.
        score: of its retrieval; None where no hop selected it.
    """

    sentence_id: int
    passage_id: int
    text: str
    round: int
    query: int | None
    gap: str | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """A line of the working memory; ``cites``: sentences of the pool that it rests on, one at least."""

    kind: NoteKind
    text: str
    cites: tuple[int, ...]
    round: int

    def to_json(self) -> dict[str, Any]:
        """Return the note as JSON."""
        return {"kind": self.kind, "text": self.text, "cites": list(self.cites), "round": self.round}


def load_note(stored: Mapping[str, Any]) -> Note:
    """The note that ``Note.to_json`` gave."""
    return Note(stored["kind"], stored["text"], tuple(stored["cites"]), stored["round"])


@dataclass(frozen=True, slots=True)
class CurationCounts:
    """Counts of a round's sentences by outcome."""

    kept: int = 0
    exact: int = 0
    near: int = 0
    contained: int = 0

    def __add__(self, other: "CurationCounts") -> "CurationCounts":
        return CurationCounts(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A round that was made.

    Attributes:
        number: from 1.
        action: what was done, in the planner's word.
        said: in JSON what was made of passages: sub_question, gap, queries, and more of the planner's.
        episodes: of its queries, in their order.
        curated: see ``CurationCounts``.
        sufficiency, covered: of the session after it.
        cost: its own.
        created_at: None before it is stored.
    """

    number: int
    action: str
    said: Mapping[str, Any]
    episodes: Sequence[UUID]
    curated: Mapping[str, int]
    sufficiency: float | None
    covered: float | None
    cost: Mapping[str, Any]
    warnings: Sequence[Mapping[str, Any]]
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A session's answer in words; ``cites``: sentences of the pool that it rests on."""

    text: str
    sufficient: bool
    cites: Sequence[int] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """A session in a list: what it is and how it ended, without what it found; see ``Round`` and ``Cost``.

    Attributes:
        principal: whose request it was.
        rounds: how many.
        finished_at: None while it runs.
    """

    id: UUID
    principal: str
    question: str
    planner: str
    status: Status
    stop_reason: StopReason | None
    rounds: int
    cost: Mapping[str, Any]
    sufficiency: float | None
    covered: float | None
    created_at: datetime
    finished_at: datetime | None
