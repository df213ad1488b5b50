"""Sessions on the wire."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictInt

from engram.api.passage_source_schema import PassageSourceOut
from engram.api.question.question_schemas import ArmIn
from engram.api.schemas import (
    DEFAULT_COLLECTION,
    CollectionName,
    Flag,
    MetadataFilter,
    Model,
    OnBehalfOf,
    Question,
    ResponseModel,
    Text,
    TraceId,
    Whole,
)
from engram.api.verdict.references import SentenceList, to_named_sentence
from engram.api.verdict.schemas import FeedbackOut, VerdictIn
from engram.core.budget import Budget
from engram.services.verdict.verdict import NamedSentence
from engram.wings.sessions.api.option_schemas import OptionsIn
from engram.wings.sessions.core.session import NoteKind, Round, SessionSummary, Status, StopReason, StopRule
from engram.wings.sessions.services.session_service import NewSession
from engram.wings.sessions.services.session_state import SessionRequest
from engram.wings.sessions.services.session_views import SessionView

PlannerName = Literal["auto", "pool", "socratic", "tree", "agent", "rfm-rag", "caller"]
QUESTION = "Which timepiece was first built by the discoverer of the moon of Saturn that has lakes of methane?"
TURNS = 24
"""Rounds of an agent by default: two for each of ten documents, and some to spare."""
SESSION_EXAMPLES: list[JsonValue] = [
    {"collection": "sample", "question": QUESTION, "wait": True},
    {
        "collection": "sample",
        "question": QUESTION,
        "planner": "socratic",
        "budget": {"rounds": 4, "llm_calls": 20},
        "answer": True,
    },
]


class BudgetIn(Model):
    """Limits of a session's cost."""

    rounds: Annotated[StrictInt, Field(ge=1, le=50), Whole] = Field(
        default=Budget().rounds,
        description=f"Rounds that retrieve; of planner 'agent' turns, of which it has {TURNS} by default.",
    )
    llm_calls: Annotated[StrictInt, Field(ge=0, le=1_000), Whole] = Field(
        default=Budget().llm_calls, description="Completions, repetitions included; 0: no LLM, rules alone."
    )
    tokens: Annotated[StrictInt, Field(ge=0, le=10_000_000), Whole] = Field(
        default=Budget().tokens, description="Of prompts and completions, as far as the endpoint tells."
    )
    seconds: Annotated[float, Field(gt=0, le=3_600, strict=True)] = Field(
        default=Budget().seconds, description="Of work on it; waiting for a worker is free."
    )
    passages: Annotated[StrictInt, Field(ge=1, le=1_000), Whole] = Field(
        default=Budget().passages, description="Distinct passages that its rounds read."
    )


class StopIn(Model):
    """Rule that may stop a session before its budget does."""

    rule: StopRule = Field(
        default="planner",
        description=(
            "'planner': its planner's own rule, or sufficiency. 'sufficiency': the learned probability alone, from "
            "`threshold` on. 'covered': the pool names every content word of the question. 'published': "
            "RFM-RAG's classifier of the pool, of planner 'rfm-rag' alone. 'llm': the LLM says that the pool "
            "answers the question. 'rounds': nothing."
        ),
    )
    threshold: Annotated[float, Field(ge=0, le=1, strict=True)] | None = Field(
        default=None,
        description="Sufficiency from which on a session stops; by default 0.9, for 'published' 0.5.",
    )


class SessionIn(Model):
    """A question that may take several rounds."""

    model_config = ConfigDict(json_schema_extra={"examples": SESSION_EXAMPLES})

    question: Question
    collection: CollectionName = DEFAULT_COLLECTION
    as_: OnBehalfOf = None
    planner: PlannerName = Field(
        default="auto",
        description=(
            "'pool': queries for what the question's triples lack, by rules, or with an LLM where one is "
            "configured and the budget has calls. 'socratic': sub-questions of an LLM, one after the other. "
            "'tree': tree search over steps of an LLM. 'agent': documents go by one at a time, and an LLM keeps "
            "what it needs of them in a graph of facts. 'auto': picks one of the first three. "
            "'rfm-rag': RFM-RAG as published, for comparison: BM25, a coverage threshold, R-Feedback. "
            "'caller': you do, by POST /sessions/{id}/rounds."
        ),
    )
    stop: StopIn = Field(default_factory=StopIn)
    budget: BudgetIn = Field(default_factory=BudgetIn)
    answer: Flag = Field(default=False, description="Whether it ends with an answer in words, by the LLM.")
    learn: Flag = Field(
        default=False,
        description="Whether its own conclusion counts as a verdict, of judge 'session', within that judge's caps.",
    )
    top_k: Annotated[StrictInt, Field(ge=1, le=100), Whole] = Field(
        default=SessionRequest().top_k, description="Passages that each of its queries shows."
    )
    arm: ArmIn | None = Field(
        default=None, description="Of its queries; absent: by the collection's experiment, else the defaults."
    )
    options: OptionsIn | None = Field(default=None, description="Of the planner.")
    unit: Text | None = Field(default=None, max_length=200, description="As of a query: stays in one arm.")
    filter: MetadataFilter | None = None
    trace_id: TraceId | None = Field(
        default=None,
        description=(
            "As of a query: stored with the session's own question, not with its sub-questions. No header is read."
        ),
    )
    wait: Flag = Field(default=False, description="Have this request do the rounds, or wait for who does.")

    def _budget(self) -> Budget:
        """Return the given budget; an agent's rounds are turns, of which it gets more by default."""
        limits = self.budget.model_dump()
        if self.planner == "agent" and "rounds" not in self.budget.model_fields_set:
            limits["rounds"] = TURNS
        return Budget(**limits)

    def to_session(self) -> NewSession:
        """The session as the service takes it."""
        return NewSession(
            question=self.question,
            planner=self.planner,
            request=SessionRequest(
                top_k=self.top_k,
                arm=None if self.arm is None else self.arm.model_dump(),
                filter=self.filter,
                unit=self.unit,
                stop=self.stop.rule,
                threshold=self.stop.threshold,
                answer=self.answer,
                learn=self.learn,
                options=None if self.options is None else self.options.model_dump(exclude_unset=True),
                trace_id=self.trace_id,
            ),
            budget=self._budget(),
        )


class RoundIn(Model):
    """One more round."""

    collection: CollectionName | None = Field(
        default=None, description="The collection's name; absent: whichever holds the session."
    )
    as_: OnBehalfOf = None
    question: Question | None = Field(
        default=None,
        description="A sub-question of yours; without one, and no evidence: what the planner would do.",
    )
    evidence: SentenceList = Field(
        default_factory=list, description="Sentences for the pool, by id or by passage and text, as in a verdict."
    )
    wait: Flag = Field(default=False, description="Have this request do the round, or wait for who does.")

    @property
    def named(self) -> list[NamedSentence]:
        """The sentences as the service takes them."""
        return [to_named_sentence(reference) for reference in self.evidence]


class SessionFeedbackIn(VerdictIn):
    """Verdict of a judge on a session."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"supporting": [17], "missed": [23], "complete": True}]}
    )

    collection: CollectionName | None = Field(
        default=None, description="The collection's name; absent: whichever holds the session."
    )
    as_: OnBehalfOf = None


class SessionFeedbackOut(FeedbackOut):
    """An accepted verdict on a session, as its own question heard it."""

    session_id: UUID
    feedback_ids: list[int] = Field(description="All verdicts that it became, this one first; for revoking.")
    complete_at: int | None = Field(
        description=(
            "The round after which the pool held all passages that a complete verdict supports; null: none, or the "
            "verdict does not say."
        ),
    )


class CostOut(ResponseModel):
    """Cost so far."""

    rounds: int = 0
    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    passages: int = 0


class CuratedOut(ResponseModel):
    """Outcome of a round's sentences: kept, or dropped as repetitions of one kind."""

    kept: int = 0
    exact: int = 0
    near: int = 0
    contained: int = 0


class GapOut(ResponseModel):
    """Missing part of the pool; the triple has unknowns as ?1, ?2 and, for the answer, ?."""

    text: str
    triple: list[str] | None


class SessionWarningOut(ResponseModel):
    """Failure of the LLM in a round, and the substitute for it."""

    round: int
    type: str
    detail: str


class RoundOut(ResponseModel):
    """A round."""

    number: int
    action: str = Field(description="What was done, in the planner's word.")
    sub_question: str | None
    gap: GapOut | None
    queries: list[str]
    query_ids: list[UUID] = Field(description="Of the queries; each is kept like any other.")
    curated: CuratedOut
    sufficiency: float | None
    covered: float | None
    said: dict[str, Any] = Field(description="What else the planner says of it.")
    cost: CostOut
    warnings: list[SessionWarningOut]
    created_at: datetime | None

    @classmethod
    def from_service(cls, one: Round) -> "RoundOut":
        """The round as it is kept."""
        details = dict(one.said)
        for stored in ("shown", "telling", "passage", "observation", "reply"):  # for the order, and to be exported
            details.pop(stored, None)
        return cls.combine(
            one,
            sub_question=details.pop("sub_question", None),
            gap=details.pop("gap", None),
            queries=details.pop("queries", []),
            query_ids=list(one.episodes),
            curated=CuratedOut(**one.curated),
            said=details,
            cost=CostOut(**one.cost),
            warnings=[SessionWarningOut(round=one.number, **warning) for warning in one.warnings],
        )


class EvidenceOut(ResponseModel):
    """A sentence of the pool, verbatim, with its citation: found when, by which query, filling which gap."""

    sentence_id: int
    passage_id: str
    text: str
    source: PassageSourceOut
    round: int
    query: str | None = Field(
        description="Null: the caller brought it, or an agent kept it of a document that went by."
    )
    gap: str | None
    score: float | None


class NoteOut(ResponseModel):
    """A line of the working memory; `cites` names sentences of the pool."""

    kind: NoteKind
    text: str
    cites: list[int]
    round: int


class SessionPassageOut(ResponseModel):
    """A passage that the session read; `evidence`: its sentences in the pool."""

    passage_id: str
    title: str | None
    text: str
    metadata: dict[str, Any]
    source: PassageSourceOut
    evidence: list[int]


class ConclusionOut(ResponseModel):
    """The answer in words; `cites` names sentences of the pool."""

    text: str
    sufficient: bool
    cites: list[int]


class SessionOut(ResponseModel):
    """A session whole."""

    session_id: UUID
    collection: str
    question: str
    planner: str
    status: Status
    stop_reason: StopReason | None
    passages: list[SessionPassageOut] = Field(description="Best first.")
    evidence: list[EvidenceOut] = Field(description="The pool, in the order in which it came.")
    notes: list[NoteOut] = Field(description="The working memory.")
    rounds: list[RoundOut]
    sufficiency: float | None = Field(
        description="Probability that the first five passages hold all the evidence; null where it ended not_found."
    )
    covered: float | None = Field(description="Share of what the question names and asks for that the pool has.")
    answer: ConclusionOut | None
    budget: dict[str, float]
    cost: CostOut
    plan: dict[str, Any] = Field(description="The planner's own state.")
    warnings: list[SessionWarningOut]
    job_id: UUID | None
    created_at: datetime
    finished_at: datetime | None

    @classmethod
    def from_service(cls, view: SessionView) -> "SessionOut":
        """The session as it is read."""
        stored = view.stored
        return cls.combine(
            stored,
            session_id=stored.id,
            collection=view.collection,
            passages=view.passages,
            evidence=view.evidence,
            notes=view.notes,
            rounds=[RoundOut.from_service(one) for one in view.rounds],
            answer=None if stored.conclusion is None else ConclusionOut(**stored.conclusion),
            budget=dict(stored.budget),
            cost=CostOut(**stored.cost),
            plan=dict(stored.plan_state),
            warnings=[SessionWarningOut(**warning) for warning in stored.warnings],
        )


class ListedSessionOut(ResponseModel):
    """A session in a list; `GET /sessions/{session_id}` has what it found."""

    session_id: UUID
    question: str
    planner: PlannerName
    status: Status
    stop_reason: StopReason | None
    rounds: int
    sufficiency: float | None
    covered: float | None
    cost: CostOut
    created_at: datetime
    finished_at: datetime | None

    @classmethod
    def from_service(cls, listed: SessionSummary) -> "ListedSessionOut":
        """The session as the list has it."""
        return cls.combine(listed, session_id=listed.id, cost=CostOut(**listed.cost))


class SessionsOut(BaseModel):
    """A page of a collection's sessions, the latest first."""

    collection: str
    sessions: list[ListedSessionOut]
    next_before: UUID | None = Field(description="Pass as before for the next page; null at the end.")


class AcceptedSession(BaseModel):
    """The answer to a request whose rounds a worker does."""

    session_id: UUID
    collection: str
    status_url: str = Field(description="Path below the service's address.")
    events_url: str = Field(description="Path below the service's address.")
