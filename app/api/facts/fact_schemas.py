"""Facts on the wire. Days are dates; the last one is the first on which a fact no longer holds."""

from datetime import date, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from app.api.schemas import (
    DEFAULT_COLLECTION,
    CollectionName,
    Flag,
    JudgeName,
    Model,
    Moment,
    Question,
    RowId,
    Text,
    Whole,
)
from app.core.facts import ALWAYS, HELD, NEVER
from app.core.session import Budget
from app.core.triples import Triple
from app.services.facts.reading import Extraction, Read
from app.services.facts.revise import Applied, Revision, Stated
from app.services.facts.search import Found, Wanted
from app.services.facts.show import FactRow, Shown, SourceRow

MAX_FACTS = 1_000
MAX_NAME = 200
MAX_OBJECT = 300
MAX_TEXT = 100_000
CURIE: list[JsonValue] = [
    {
        "source": "encyclopedia",
        "facts": [{"subject": "Marie Curie", "predicate": "place of birth", "object": "Warsaw"}],
    },
    {"source": "a page", "title": "Marie Curie", "text": "Marie Curie was born in Warsaw in 1867."},
]
REVISIONS: list[JsonValue] = [
    {"judge": "ana", "revisions": [{"action": "confirm", "fact_id": 7}]},
    {"judge": "ana", "revisions": [{"action": "close", "fact_id": 7, "until": "2012-06-01", "reason": "resigned"}]},
    {"judge": "ana", "instruction": "Marie Curie was born in Warsaw, not in Paris."},
]


def _day(value: Any) -> Any:
    """A date as ISO 8601 writes it: a bare number could be a year or seconds."""
    if isinstance(value, str) and len(value) == len("2026-05-01"):
        return value
    raise ValueError("must be a date, like 2026-05-01")


Day = Annotated[date, BeforeValidator(_day), Field(json_schema_extra={"format": "date"})]
Name = Annotated[Text, Field(max_length=MAX_NAME)]
GraphName = Annotated[CollectionName | None, Field(description="A graph of its own; null: the collection's.")]
Confidence = Annotated[float, Field(gt=0, le=1)]


class FactIn(Model):
    """A fact that a source states."""

    subject: Name
    predicate: Annotated[Text, Field(max_length=100)]
    object: Annotated[Text, Field(max_length=MAX_OBJECT)]
    kind: Literal["entity", "date", "number", "text"] = Field(default="entity", description="What the object is.")
    valid_from: Day | None = Field(default=None, description="First day on which it holds.")
    valid_to: Day | None = Field(default=None, description="First day on which it no longer holds.")
    confidence: Confidence = 1.0
    sentence: Annotated[Text, Field(max_length=10_000)] | None = Field(
        default=None, description="How the source says it; by default the fact itself."
    )

    def stated(self) -> Stated:
        """As the service takes it."""
        first, last = (None if day is None else day.toordinal() for day in (self.valid_from, self.valid_to))
        triple = Triple(self.subject, self.predicate, self.object, 0, self.kind, first, last, self.confidence)
        return Stated(triple, self.sentence)


class ReadingBudgetIn(Model):
    """What reading a text by the language model may cost at most; what is beyond it the rules read."""

    llm_calls: Annotated[int, Field(ge=0, le=1_000, strict=True), Whole] = Field(
        default=Budget().llm_calls, description="Completions, repetitions included; a text takes two a piece."
    )
    tokens: Annotated[int, Field(ge=0, le=10_000_000, strict=True), Whole] = Field(
        default=Budget().tokens, description="Of prompts and completions, as far as the endpoint tells."
    )
    seconds: Annotated[float, Field(gt=0, le=3_600, strict=True)] = Budget().seconds


class FactsIn(Model):
    """What a source states: facts, or a text that facts are read from, by rules or by a language model."""

    model_config = ConfigDict(json_schema_extra={"examples": CURIE})

    collection: CollectionName = DEFAULT_COLLECTION
    graph: GraphName = None
    source: Name = Field(description="Who says so. One source that repeats itself says nothing new.")
    facts: list[FactIn] = Field(default_factory=list, max_length=MAX_FACTS)
    title: Name | None = Field(default=None, description="What the text is about.")
    text: Annotated[Text, Field(max_length=MAX_TEXT)] | None = None
    extraction: Extraction | None = Field(
        default=None,
        description=(
            "What reads the text: the rules, or the language model, which takes the scope `llm`. By default as "
            "ENGRAM_FACTS_EXTRACTION says, and by the rules where the model may not be used."
        ),
    )
    budget: ReadingBudgetIn = Field(default_factory=ReadingBudgetIn)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if bool(self.facts) == (self.text is not None):
            raise ValueError("needs either facts or a text")
        return self

    def asked(self) -> dict[str, Any]:
        """What a request is told from another by, under one key."""
        return self.model_dump(mode="json")


class RevisionIn(Model):
    """What a judge says of a fact."""

    action: Literal["confirm", "contradict", "supersede", "close"]
    fact_id: RowId
    by: RowId | None = Field(default=None, description="Of supersede: the fact that comes after.")
    until: Day | None = Field(default=None, description="Of supersede and close: first day it no longer holds.")
    reason: Annotated[Text, Field(max_length=500)] | None = None
    confidence: Confidence = 1.0

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.by is not None) != (self.action == "supersede"):
            raise ValueError("by names the fact that supersedes, and nothing else")
        if self.until is not None and self.action not in {"supersede", "close"}:
            raise ValueError("until is of supersede and close")
        return self

    def revision(self) -> Revision:
        """As the service takes it."""
        until = None if self.until is None else self.until.toordinal()
        return Revision(self.action, self.fact_id, self.by, until, self.reason, self.confidence)


class ReviseIn(Model):
    """What a judge says of facts: revisions, or an instruction in words, for which an LLM is needed."""

    model_config = ConfigDict(json_schema_extra={"examples": REVISIONS})

    collection: CollectionName = DEFAULT_COLLECTION
    judge: JudgeName | None = Field(
        default=None, description="By default the access key's judge; another takes the scope `moderate`."
    )
    revisions: list[RevisionIn] = Field(default_factory=list, max_length=100)
    instruction: Annotated[Text, Field(max_length=2_000)] | None = None
    graph: GraphName = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if bool(self.revisions) == (self.instruction is not None):
            raise ValueError("needs either revisions or an instruction")
        return self


class FactSearchIn(Model):
    """What to search for: a question, entities, or a pattern; what is left out may be anything."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "Where was Marie Curie born?"}, {"subject": "Marie Curie"}]}
    )

    collection: CollectionName = DEFAULT_COLLECTION
    graph: GraphName = None
    query: Question | None = None
    entities: list[Name] = Field(default_factory=list, max_length=20, description="By their names.")
    entity_ids: list[RowId] = Field(default_factory=list, max_length=20)
    subject: Name | None = None
    predicate: Annotated[Text, Field(max_length=100)] | None = None
    object: Annotated[Text, Field(max_length=MAX_OBJECT)] | None = None
    max_edges: Annotated[int, Field(ge=1, le=4, strict=True), Whole] = 2
    as_of: Moment | None = Field(default=None, description="What was known and believed at that moment.")
    valid_on: Day | None = Field(
        default=None, description="Facts that held on that day; by default on the days that the query speaks of."
    )
    min_belief: Annotated[float, Field(ge=0, le=1, strict=True)] = 0.0
    include_closed: Flag = Field(
        default=False, description="Also answers that are over. As bridges to others they serve in any case."
    )
    top_k: Annotated[int, Field(ge=1, le=100, strict=True), Whole] = Field(default=10, description="Paths wanted.")
    token_budget: Annotated[int, Field(ge=1, le=20_000, strict=True), Whole] = 600

    @model_validator(mode="after")
    def _asks(self) -> Self:
        if not (self.query or self.entities or self.entity_ids or self.subject or self.object):
            raise ValueError("needs a query, entities, a subject or an object")
        return self

    def wanted(self) -> Wanted:
        """As the service takes it."""
        day = None if self.valid_on is None else self.valid_on.toordinal()
        return Wanted(
            question=self.query,
            entities=[*self.entities, *self.entity_ids],
            subject=self.subject,
            predicate=self.predicate,
            object=self.object,
            graph=self.graph,
            edges=self.max_edges,
            as_of=self.as_of,
            days=None if day is None else (day, day + 1),
            min_belief=self.min_belief,
            include_closed=self.include_closed,
            paths=self.top_k,
            budget=self.token_budget,
        )


class EntityRef(BaseModel):
    """An entity, by its id and as it was written first."""

    entity_id: int
    name: str


class FactOut(BaseModel):
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
    def of(cls, row: FactRow, belief: float | None = None) -> "FactOut":
        """As the wire has it; ``belief`` that of another moment."""
        believed = row.belief if belief is None else belief
        return cls(
            fact_id=row.id,
            subject=EntityRef(entity_id=row.subject_id, name=row.subject),
            predicate=row.predicate,
            object=row.object,
            object_kind=row.object_kind,
            object_entity_id=row.object_id or None,
            belief=believed,
            perplexity=row.perplexity,
            doubted=believed < HELD,
            valid_from=_date(row.valid_from),
            valid_to=_date(row.valid_to),
            held_until=_date(row.held_until),
            closed_at=row.closed_at,
            closed_reason=row.closed_reason,
            superseded_by=row.superseded_by,
            learned_at=row.learned_at,
        )


class FactCitationOut(BaseModel):
    """Who says a fact: a sentence of a passage, or a sentence that a source stated."""

    passage_id: str | None
    sentence_id: int | None
    source: str | None
    text: str
    learned_at: datetime

    @classmethod
    def of(cls, row: SourceRow) -> "FactCitationOut":
        """As the wire has it."""
        return cls(
            passage_id=row.passage,
            sentence_id=row.sentence_id,
            source=row.source,
            text=row.text,
            learned_at=row.learned_at,
        )


class CauseOut(BaseModel):
    """Something that was said, and what it did to a fact."""

    kind: str = Field(description="source, confirm or contradict.")
    by: str | None = Field(description="The source or judge; null: a passage.")
    passage_id: str | None
    event_id: int | None
    of_fact: int = Field(description="The fact that it was said of: this one, or one that bears on it.")
    supports: bool
    text: str | None
    gain: float
    belief: float = Field(description="After it.")
    perplexity: float
    at: datetime


class FactDetail(FactOut):
    """A fact, who says it, and what moved it."""

    sources: list[FactCitationOut]
    history: list[CauseOut]

    @classmethod
    def shown(cls, shown: Shown) -> "FactDetail":
        """As the wire has it."""
        return cls(
            **FactOut.of(shown.fact).model_dump(),
            sources=[FactCitationOut.of(row) for row in shown.sources],
            history=[
                CauseOut(
                    kind=move.kind,
                    by=move.judge,
                    passage_id=move.passage,
                    event_id=move.event_id,
                    of_fact=move.said_of,
                    supports=bool(move.target),
                    text=move.text,
                    gain=move.gain,
                    belief=move.belief,
                    perplexity=move.perplexity_after,
                    at=move.at,
                )
                for move in shown.history
            ],
        )


class EventOut(BaseModel):
    """An event of the log of facts."""

    event_id: int
    kind: str
    judge: str
    status: Literal["applied", "revoked"]
    fact_id: int | None
    received_at: datetime
    revoked_at: datetime | None

    @classmethod
    def of(cls, event: Any) -> "EventOut":
        """As the wire has it."""
        return cls(
            event_id=event.id,
            kind=event.kind,
            judge=event.judge,
            status=event.status,
            fact_id=event.fact_id,
            received_at=event.received_at,
            revoked_at=event.revoked_at,
        )


class FactWarningOut(BaseModel):
    """A part of a text that the language model was to read and the rules read instead."""

    type: Literal["read-by-rules"] = "read-by-rules"
    detail: str = Field(description="How the endpoint failed, or which budget was spent.")


class FactsOut(BaseModel):
    """What a statement or a revision came to."""

    collection: str
    events: list[EventOut]
    extraction: Extraction | None = Field(
        default=None, description="What read the text; null where there was none, or for a repeated request."
    )
    warnings: list[FactWarningOut] = Field(default_factory=list)
    facts: list[FactOut] = Field(description="As they stand now; those that nobody states any more are left out.")

    @classmethod
    def of(
        cls, collection: str, applied: list[Applied], rows: list[FactRow], read: Read | None = None
    ) -> "FactsOut":
        """As the wire has it; ``read``: the text, if one was."""
        return cls(
            extraction=None if read is None else read.by,
            warnings=[] if read is None else [FactWarningOut(detail=detail) for detail in read.failed],
            collection=collection,
            events=[EventOut.of(one.event) for one in applied],
            facts=[FactOut.of(row) for row in rows],
        )


class PathOut(BaseModel):
    """Facts that lead from an entity to another or to something else, in order."""

    start: str
    fact_ids: list[int]
    score: float


class FactSearchOut(BaseModel):
    """Paths, their facts, and these as text; citations are numbered from 1."""

    collection: str
    starts: list[EntityRef]
    paths: list[PathOut]
    facts: list[FactOut]
    text: str = Field(description="The facts, a line for each subject; a number in brackets is a citation's.")
    citations: list[FactCitationOut]
    tokens: int = Field(description="Of the text, about as many as a language model counts.")

    @classmethod
    def of(cls, collection: str, found: Found) -> "FactSearchOut":
        """As the wire has it."""
        return cls(
            collection=collection,
            starts=[EntityRef(entity_id=one, name=name) for one, name in found.starts.items()],
            paths=[PathOut(start=p.start, fact_ids=list(p.facts), score=p.score) for p in found.paths],
            facts=[FactOut.of(row, found.beliefs[fact]) for fact, row in found.facts.items()],
            text=found.text,
            citations=[FactCitationOut.of(row) for row in found.citations],
            tokens=found.tokens,
        )


def _date(day: int) -> date | None:
    return None if day in {ALWAYS, NEVER} else date.fromordinal(day)
