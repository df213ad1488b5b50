"""Facts as they are answered. Days are dates; the last one is the first on which a fact no longer holds."""

from datetime import date, datetime
from typing import Literal

from pydantic import BaseModel, Field

from engram.api.passage_source_schema import PassageSourceOut
from engram.api.schemas import ResponseModel
from engram.wings.facts.core.beliefs import LEAST_BELIEF
from engram.wings.facts.core.claims import ALWAYS, NEVER
from engram.wings.facts.services.fact_search import FactSearchResult
from engram.wings.facts.services.fact_service import AppliedEvent
from engram.wings.facts.services.fact_views import FactCause, FactRow, FactView
from engram.wings.facts.services.text_facts import ExtractedFacts


class EntityRef(BaseModel):
    """An entity, by its id and as it was written first."""

    entity_id: int
    name: str


class FactOut(ResponseModel):
    """A fact as it stands."""

    fact_id: int
    subject: EntityRef
    predicate: str
    object: str
    object_kind: str
    object_entity_id: int | None
    belief: float = Field(description="From 0, surely wrong, to 1, surely right; below 0.5 it is doubted.")
    perplexity: float = Field(description="How little is known: 1 before anything was said.")
    doubted: bool
    valid_from: date | None
    valid_to: date | None = Field(description="First day on which it no longer holds, by itself.")
    held_until: date | None = Field(description="The same, by what ended it since.")
    closed_at: datetime | None
    closed_reason: str | None
    superseded_by: int | None
    learned_at: datetime

    @classmethod
    def from_service(cls, row: FactRow, belief: float | None = None) -> "FactOut":
        """Build the response.

        Args:
            belief: belief at the moment that was asked about; None for the present one. All other fields are those
                of now.
        """
        believed = row.belief if belief is None else belief
        return cls.combine(
            row,
            fact_id=row.id,
            subject=EntityRef(entity_id=row.subject_id, name=row.subject),
            object_entity_id=row.object_id or None,
            belief=believed,
            doubted=believed < LEAST_BELIEF,
            valid_from=_date(row.valid_from),
            valid_to=_date(row.valid_to),
            held_until=_date(row.held_until),
        )


class FactCitationOut(ResponseModel):
    """Source of a fact: a statement, with the passage that it came from."""

    passage_id: str | None = Field(validation_alias="passage")
    source: PassageSourceOut | None = Field(description="Where the passage comes from; null: there is none.")
    stated_by: str = Field(description="Who stated it.")
    text: str
    learned_at: datetime
    withdrawn_at: datetime | None = Field(description="Since when it says so no more: its passage was changed.")


class FactCauseOut(ResponseModel):
    """Something that was said, and what it did to a fact."""

    kind: str = Field(description="source, confirm, contradict, or change: a passage says something no more.")
    by: str | None = Field(
        description="The source or judge; null: a passage, or a judge who is not for the caller to know.",
    )
    passage_id: str | None
    event_id: int | None
    of_fact: int = Field(description="The fact that it was said of: this one, or one that bears on it.")
    supports: bool
    text: str | None
    gain: float
    belief: float = Field(description="After it.")
    perplexity: float
    at: datetime

    @classmethod
    def from_view(cls, cause: FactCause) -> "FactCauseOut":
        """Build the response from the service's result."""
        return cls(
            kind=cause.word.kind,
            by=cause.word.judge,
            passage_id=cause.word.passage,
            event_id=cause.word.event_id,
            of_fact=cause.word.said_of,
            supports=bool(cause.move.target),
            text=cause.word.text,
            gain=cause.move.gain,
            belief=cause.move.belief,
            perplexity=cause.move.perplexity_after,
            at=cause.at,
        )


class FactDetail(FactOut):
    """A fact, who says it, and what moved it."""

    sources: list[FactCitationOut]
    history: list[FactCauseOut]

    @classmethod
    def from_view(cls, view: FactView) -> "FactDetail":
        """Build the response from the service's result."""
        return cls(
            **FactOut.from_service(view.fact).model_dump(),
            sources=view.sources,
            history=[FactCauseOut.from_view(one) for one in view.history],
        )


class EventOut(ResponseModel):
    """An event of the log of facts."""

    event_id: int = Field(validation_alias="id")
    kind: str
    judge: str
    status: Literal["applied", "revoked"]
    fact_id: int | None
    received_at: datetime
    revoked_at: datetime | None


class FactWarningOut(BaseModel):
    """A part of a text that was left out, because the language model failed it or the budget was spent."""

    type: Literal["not-read"] = "not-read"
    detail: str = Field(description="How the endpoint failed, or which budget was spent.")


class FactsOut(BaseModel):
    """Result of a statement or a revision."""

    collection: str
    events: list[EventOut]
    warnings: list[FactWarningOut] = Field(default_factory=list)
    facts: list[FactOut] = Field(description="As they stand now; those that nobody states any more are left out.")

    @classmethod
    def from_service(
        cls, collection: str, applied: list[AppliedEvent], rows: list[FactRow], read: ExtractedFacts | None = None
    ) -> "FactsOut":
        """Build the response; ``read``: the text, if there was one."""
        return cls(
            warnings=[] if read is None else [FactWarningOut(detail=detail) for detail in read.failed],
            collection=collection,
            events=[one.event for one in applied],
            facts=[FactOut.from_service(row) for row in rows],
        )


class PathOut(BaseModel):
    """Facts that lead from an entity to another or to something else, in order."""

    start: str
    fact_ids: list[int]
    score: float


class FactSearchOut(ResponseModel):
    """Paths, their facts, and these as text; citations are numbered from 1."""

    collection: str
    starts: list[EntityRef]
    paths: list[PathOut]
    facts: list[FactOut]
    text: str = Field(description="The facts, a line for each subject; a number in brackets is a citation's.")
    citations: list[FactCitationOut]
    tokens: int = Field(description="Of the text, about as many as a language model counts.")

    @classmethod
    def from_service(cls, collection: str, result: FactSearchResult) -> "FactSearchOut":
        """Build the response from the service's result."""
        return cls.combine(
            result,
            collection=collection,
            starts=[EntityRef(entity_id=one, name=name) for one, name in result.starts.items()],
            paths=[PathOut(start=p.start, fact_ids=list(p.facts), score=p.score) for p in result.paths],
            facts=[FactOut.from_service(row, result.beliefs[fact]) for fact, row in result.facts.items()],
        )


def _date(day: int) -> date | None:
    return None if day in {ALWAYS, NEVER} else date.fromordinal(day)
