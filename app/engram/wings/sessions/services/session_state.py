"""A session as planners see it: all that Postgres has of it, and nothing else.

A planner keeps nothing between two steps but what it puts into ``plan_state`` (JSON of its own, such as a tree) and
into notes, so that whoever runs the next step, in whichever process, has the same to go by.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from engram.context.tenancy import ReaderNames
from engram.core.budget import Budget
from engram.wings.sessions.core.feedback_stop import AT_LEAST
from engram.wings.sessions.core.session import (
    Conclusion,
    Cost,
    Note,
    PoolSentence,
    Round,
    Status,
    StopReason,
    StopRule,
    load_note,
)
from engram.wings.sessions.storage.sessions import StoredEvidence, StoredSession

SUFFICIENT_PROBABILITY = 0.9
"""Probability that the best five hold all the evidence from which on it is enough, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """Request of a session: retrieval, stopping and answering.

    Attributes:
        top_k: passages that each of its queries shows.
        arm: memory, profile and strategy of its queries; None for what the collection is set to.
        filter: only passages that it lets through, see ``Query``.
        unit: whose question it is, see ``Query``; a session by itself stays in one arm.
        stop: what may stop it before its budget.
        threshold: from which probability on the evidence is enough, in [0, 1]; None for the rule's own.
        answer: whether it ends with an answer in words, for which an LLM is needed.
        learn: whether its own conclusion counts as a verdict, under a judge of its own.
        options: of its planner.
        trace_id: the trace of the session's own question, see ``Query``; sub-questions carry none.
    """

    top_k: int = 5
    arm: Mapping[str, Any] | None = None
    filter: Mapping[str, Any] | None = None
    unit: str | None = None
    stop: StopRule = "planner"
    threshold: float | None = None
    answer: bool = False
    learn: bool = False
    options: Mapping[str, Any] | None = None
    trace_id: str | None = None

    @property
    def at_least(self) -> float:
        """From which probability on the evidence is enough."""
        return (
            self.threshold
            if self.threshold is not None
            else AT_LEAST
            if self.stop == "published"
            else SUFFICIENT_PROBABILITY
        )


@dataclass(frozen=True, slots=True)
class SessionState:
    """A session before a step.

    Attributes:
        request: what the caller asked for.
        readers: what the principal is among the readers of passages; None: it sees every passage.
        principal: whose request it was; ``trusted``: whether its judge counts in full; ``llm_tokens``: what
            a day's calls of a language model may cost it, None: any number.
        caller: name of the principal that asked for it, which pays for it; None: it asked itself.
        rounds: those made, in order.
        pool: the evidence, in the order in which it came, of what there still is.
        notes: the working memory.
        ranked: passages, best first.
        read: passages that rounds have read.
        plan_state: the planner's own.
        cost: so far.
    """

    collection_id: int
    id: UUID
    principal: str
    caller: str | None
    trusted: bool
    llm_tokens: int | None
    readers: ReaderNames | None
    question: str
    planner: str
    request: SessionRequest
    budget: Budget
    status: Status
    stop_reason: StopReason | None
    rounds: Sequence[Round]
    pool: Sequence[PoolSentence]
    notes: Sequence[Note]
    ranked: Sequence[int]
    read: Mapping[int, int]
    sufficiency: float | None
    covered: float | None
    plan_state: Mapping[str, Any]
    conclusion: Conclusion | None
    warnings: Sequence[Mapping[str, Any]]
    cost: Cost

    @property
    def number(self) -> int:
        """Number of the next round, from 1."""
        return len(self.rounds) + 1

    @property
    def without(self) -> Sequence[str]:
        """Parts that it is to do without, see ``tree_options.Part``."""
        left_out: Sequence[str] = (self.request.options or {}).get("without", ())
        return left_out

    @property
    def sub_questions(self) -> list[str]:
        """Sub-questions of its rounds, in order."""
        return [str(sub_question) for one in self.rounds if (sub_question := one.said.get("sub_question"))]

    @property
    def queries(self) -> list[str]:
        """All queries of its rounds, in order."""
        return [query for one in self.rounds for query in one.said.get("queries", ())]


def read_readers(stored: StoredSession) -> ReaderNames | None:
    """Read the names of its principal among the readers of passages; None: it sees every passage."""
    if stored.readers is None:
        return None
    return ReaderNames(tuple(stored.readers["names"]), tuple(stored.readers["administers"]))


def build_state(
    collection_id: int,
    stored: StoredSession,
    rounds: Sequence[Round],
    evidence: Sequence[StoredEvidence],
) -> SessionState:
    """The state that rows are."""
    conclusion = stored.conclusion
    return SessionState(
        collection_id=collection_id,
        id=stored.id,
        principal=stored.principal,
        caller=stored.caller,
        trusted=stored.trusted,
        llm_tokens=stored.llm_tokens,
        readers=read_readers(stored),
        question=stored.question,
        planner=stored.planner,
        request=SessionRequest(**stored.asked),
        budget=Budget(**stored.budget),
        status=stored.status,  # type: ignore[arg-type] # as the table's constraint has it
        stop_reason=stored.stop_reason,  # type: ignore[arg-type]
        rounds=rounds,
        pool=[PoolSentence(*(getattr(one, name) for name in PoolSentence.__slots__)) for one in evidence],
        notes=[load_note(note) for note in stored.notes],
        ranked=list(stored.ranked),
        read=_read(rounds, evidence),
        sufficiency=stored.sufficiency,
        covered=stored.covered,
        plan_state=stored.plan_state,
        conclusion=None
        if conclusion is None
        else Conclusion(conclusion["text"], conclusion["sufficient"], tuple(conclusion["cites"])),
        warnings=stored.warnings,
        cost=Cost(**stored.cost),
    )


def _read(rounds: Sequence[Round], evidence: Sequence[StoredEvidence]) -> dict[int, int]:
    """Passages that rounds have read -> the first of these."""
    read: dict[int, int] = {}
    for one in rounds:
        for shown in one.said.get("shown", ()):
            for passage, _ in shown:
                read.setdefault(passage, one.number)
    for sentence in evidence:
        read.setdefault(sentence.passage_id, sentence.round)
    return read


def format_cost(cost: Cost) -> dict[str, Any]:
    """Return the cost as JSON, seconds to the millisecond."""
    return asdict(cost) | {"seconds": round(cost.seconds, 3)}
