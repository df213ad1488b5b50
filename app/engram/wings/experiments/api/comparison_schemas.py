"""Schemas of comparisons."""

from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue, StrictInt

from engram.api.passage_source_schema import PassageSourceOut
from engram.api.question.answer_schemas import TimingsOut
from engram.api.question.question_schemas import QUESTION, ArmIn
from engram.api.schemas import (
    DEFAULT_COLLECTION,
    CollectionName,
    MetadataFilter,
    Model,
    OnBehalfOf,
    Question,
    ResponseModel,
    Storable,
    WarningOut,
    Whole,
)
from engram.core.ranking.profiles import ProfileName
from engram.services.auth.scope import Scope
from engram.services.question.query import HopStopRule, Memory, Query, Strategy
from engram.services.question.walk import StopReason

COMPARE_EXAMPLES: list[JsonValue] = [
    {"collection": "sample", "query": QUESTION},
    {
        "collection": "sample",
        "query": QUESTION,
        "top_k": 10,
        "a": {"memory": "read", "profile": "paper"},
        "b": {"memory": "read", "profile": "default"},
    },
]


class CompareIn(Model):
    """A question for two arms."""

    model_config = ConfigDict(json_schema_extra={"examples": COMPARE_EXAMPLES})

    query: Question
    collection: CollectionName = DEFAULT_COLLECTION
    as_: OnBehalfOf = None
    top_k: Annotated[StrictInt, Field(ge=1, le=100), Whole] = Field(default=5, description="Passages of each arm.")
    max_hops: Annotated[StrictInt, Field(ge=1, le=10), Whole] | None = Field(
        default=None, description="As of POST /query: only where both arms have strategy 'graph'."
    )
    stop_rule: HopStopRule | None = Field(
        default=None, description="As of POST /query: only where both arms have strategy 'graph'."
    )
    a: ArmIn = Field(default_factory=lambda: ArmIn(memory="off"), description="Absent: without memory.")
    b: ArmIn = Field(default_factory=ArmIn, description="Absent: with memory.")
    filter: MetadataFilter | None = None
    time_constraint: Storable | None = Field(default=None, max_length=500, description="As of POST /query.")

    def to_queries(self, scope: Scope) -> tuple[Query, Query]:
        """The question as the service takes it, for each arm."""
        return self._query(self.a, scope), self._query(self.b, scope)

    def _query(self, arm: ArmIn, scope: Scope) -> Query:
        return Query(
            text=self.query,
            scope=scope,
            top_k=self.top_k,
            max_hops=self.max_hops,
            stop_rule=self.stop_rule,
            memory=arm.memory,
            profile=arm.profile,
            strategy=arm.strategy,
            filter=self.filter,
            time_constraint=None if self.time_constraint is None else self.time_constraint.strip(),
        )


class ComparedPassageOut(ResponseModel):
    """A passage among the first of either arm."""

    passage_id: str
    title: str | None
    text: str
    source: PassageSourceOut
    rank_a: int | None = Field(description="May lie beyond top_k; null where the arm did not rank it.")
    rank_b: int | None
    score_a: float | None = Field(description="Scores of different profiles and strategies do not compare.")
    score_b: float | None


class MemoryPartOut(ResponseModel):
    """Memory that an arm read."""

    recalled: int = Field(description="Sentences that verdicts on past questions brought in.")
    moved: int = Field(description="Selected sentences whose memories a verdict had moved.")
    key_generation: int = Field(description="The generation of passage keys that was searched; 0: base keys.")


class SideOut(ResponseModel):
    """Answer of one arm and how it came about."""

    memory: Memory
    profile: ProfileName
    strategy: Strategy
    hops: int
    stop_reason: StopReason
    read: MemoryPartOut
    timings: TimingsOut
    warnings: list[WarningOut] = Field(
        default_factory=list, description="What the LLM endpoint failed, and was done without it."
    )


class CompareOut(ResponseModel):
    """One question under two arms. It leaves no query behind that feedback could refer to."""

    collection: str
    query: str
    top_k: int
    a: SideOut
    b: SideOut
    passages: list[ComparedPassageOut] = Field(
        description="The first top_k of either arm, by the better of their two ranks."
    )
