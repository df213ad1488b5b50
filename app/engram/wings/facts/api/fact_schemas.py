"""Requests about facts. Days are dates; the last one is the first on which a fact no longer holds."""

from datetime import date
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from engram.api.schemas import (
    DEFAULT_COLLECTION,
    CollectionName,
    Flag,
    JudgeName,
    Model,
    Moment,
    OnBehalfOf,
    Question,
    RowId,
    Text,
    Whole,
)
from engram.core.budget import Budget
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.services.fact_search import FactPattern
from engram.wings.facts.services.fact_service import Revision, StatedFact

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
Confidence = Annotated[float, Field(ge=1e-6, le=1)]


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

    def to_stated_fact(self) -> StatedFact:
        """Return the fact for the service."""
        first, last = (None if day is None else day.toordinal() for day in (self.valid_from, self.valid_to))
        triple = Triple(self.subject, self.predicate, self.object, 0, self.kind, first, last, self.confidence)
        return StatedFact(triple, self.sentence)


class ReadingBudgetIn(Model):
    """Most that reading a text by the language model may cost; the rest is not read."""

    llm_calls: Annotated[int, Field(ge=0, le=1_000, strict=True), Whole] = Field(
        default=Budget().llm_calls, description="Completions, repetitions included; a text takes two a piece."
    )
    tokens: Annotated[int, Field(ge=0, le=10_000_000, strict=True), Whole] = Field(
        default=Budget().tokens, description="Of prompts and completions, as far as the endpoint tells."
    )
    seconds: Annotated[float, Field(gt=0, le=3_600, strict=True)] = Budget().seconds


class FactsIn(Model):
    """Statement of a source: facts, or a text that the language model reads, which takes the scope `llm`."""

    model_config = ConfigDict(json_schema_extra={"examples": CURIE})

    collection: CollectionName = DEFAULT_COLLECTION
    graph: GraphName = None
    source: Name = Field(description="Who says so. One source that repeats itself says nothing new.")
    facts: list[FactIn] = Field(default_factory=list, max_length=MAX_FACTS)
    title: Name | None = Field(default=None, description="What the text is about.")
    text: Annotated[Text, Field(max_length=MAX_TEXT)] | None = None
    budget: ReadingBudgetIn = Field(default_factory=ReadingBudgetIn)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if bool(self.facts) == (self.text is not None):
            raise ValueError("needs either facts or a text")
        return self

    def request_values(self) -> dict[str, Any]:
        """Return the values that tell one request under a key from another."""
        return self.model_dump(mode="json")


class RevisionIn(Model):
    """A judge's word on a fact."""

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
        """Return the revision for the service."""
        until = None if self.until is None else self.until.toordinal()
        return Revision(self.action, self.fact_id, self.by, until, self.reason, self.confidence)


class ReviseIn(Model):
    """A judge's word on facts: revisions, or an instruction in words, which needs an LLM."""

    model_config = ConfigDict(json_schema_extra={"examples": REVISIONS})

    collection: CollectionName = DEFAULT_COLLECTION
    as_: OnBehalfOf = None
    judge: JudgeName | None = Field(
        default=None, description="By default the access key's judge; another takes the scope `judge-as`."
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
    """Pattern of a search: a question, entities, or parts of a fact; omitted parts match anything."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "Where was Marie Curie born?"}, {"subject": "Marie Curie"}]}
    )

    collection: CollectionName = DEFAULT_COLLECTION
    as_: OnBehalfOf = None
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

    def as_pattern(self) -> FactPattern:
        """Return the pattern for the service."""
        day = None if self.valid_on is None else self.valid_on.toordinal()
        return FactPattern(
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
