"""Questions on the wire."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, StrictBool, StrictInt, model_validator

from engram.api.schemas import (
    DEFAULT_COLLECTION,
    CollectionName,
    ExpansionIn,
    MetadataFilter,
    Model,
    OnBehalfOf,
    Question,
    Storable,
    Text,
    TraceId,
    Whole,
)
from engram.core.learning.logged_verdict import Expansion
from engram.core.ranking.profiles import ProfileName
from engram.services.answers.joint_answers import MOST_COLLECTIONS
from engram.services.answers.passage_context import ContextPart
from engram.services.auth.scope import Scope
from engram.services.question.query import HopStopRule, Include, Memory, Query, Strategy

QUESTION = "Which timepiece was first built by the discoverer of the moon of Saturn that has lakes of methane?"
QUERY_EXAMPLES: list[JsonValue] = [
    {"collection": "sample", "query": QUESTION},
    {
        "collection": "sample",
        "query": QUESTION,
        "top_k": 10,
        "arm": {"memory": "off", "profile": "paper"},
        "filter": {"topic": "space"},
        "include": ["trace"],
    },
    {
        "collection": "sample",
        "query": QUESTION,
        "arm": {"strategy": "hybrid"},
        "expansions": [{"method": "prf", "text": "pendulum clock, Huygens, Titan"}],
    },
]
MAX_EXPANSIONS = 20
MAX_QUERIES = 50
MAX_CONTEXT_PASSAGES = 10
MAX_CONTEXT_CHARACTERS = 20_000


class ArmIn(Model):
    """Memory, profile and strategy of an answer."""

    memory: Memory = Field(default="read", description="Whether learned state is read.")
    profile: ProfileName = Field(
        default="default",
        description=(
            "'paper': the published method, as far as docs/paper.md says; 'default': ours. "
            "Makes no difference to strategies other than 'graph'."
        ),
    )
    strategy: Strategy = Field(
        default="graph",
        description=(
            "'graph': walk the entity-sentence-passage graph. The others rank passages by their keys alone, with "
            "neither hops nor recall: 'dense' by cosine, 'lexical' by BM25, 'hybrid' by both, fused by reciprocal "
            "ranks. With memory 'read' a passage's key is its evolved one, if it has one."
        ),
    )


class ContextIn(Model):
    """Context that each passage gets from its document: the passages before and after it, or its section."""

    before: Annotated[StrictInt, Field(ge=0, le=MAX_CONTEXT_PASSAGES), Whole] = Field(
        default=1, description="Passages before it, at most."
    )
    after: Annotated[StrictInt, Field(ge=0, le=MAX_CONTEXT_PASSAGES), Whole] = Field(
        default=1, description="Passages after it, at most."
    )
    section: StrictBool = Field(
        default=False,
        description="Instead, the passages below the same heading on both sides of it; of a passage without one, "
        "those without.",
    )
    characters: Annotated[StrictInt, Field(ge=1, le=MAX_CONTEXT_CHARACTERS), Whole] = Field(
        default=4_000, description="Of the passages around one, at most; nearer ones have room first."
    )

    def to_part(self) -> ContextPart:
        """Return the part that a query carries."""
        return ContextPart(**self.model_dump())


class QueryIn(Model):
    """A question."""

    model_config = ConfigDict(json_schema_extra={"examples": QUERY_EXAMPLES})

    query: Question
    collection: CollectionName = DEFAULT_COLLECTION
    as_: OnBehalfOf = None
    top_k: Annotated[StrictInt, Field(ge=1, le=100), Whole] = Field(default=5, description="Passages wanted.")
    max_hops: Annotated[StrictInt, Field(ge=1, le=10), Whole] | None = Field(
        default=None, description="Null: the profile's own. Only with strategy 'graph'."
    )
    arm: ArmIn = Field(
        default_factory=ArmIn,
        description="Absent: an arm of the collection's experiment, if it has one, else the defaults.",
    )
    unit: Text | None = Field(
        default=None,
        max_length=200,
        description="Your id of a user or a session: one unit stays in one arm of an experiment. Not kept.",
    )
    filter: MetadataFilter | None = None
    time_constraint: Storable | None = Field(
        default=None,
        max_length=500,
        description=(
            "Null: looked for in the question, in strategy 'graph'. Empty: none. Else the phrase itself. The other "
            "strategies only keep it for verdicts."
        ),
    )
    stop_rule: HopStopRule | None = Field(
        default=None,
        description=(
            "What may end the hops early. 'coverage': the evidence names every content word of the question, "
            "or verdicts on a nearby past question vouch for it. 'learned': the first five passages, ranked after "
            "every hop, are likely enough (profile 'default' only). 'llm': the endpoint says so. "
            "Null: 'coverage' in profile default, 'none' in paper. Only with strategy 'graph'."
        ),
    )
    min_sufficiency: Annotated[float, Field(ge=0, le=1, strict=True)] | Literal["auto"] | None = Field(
        default=None,
        description=(
            "If the probability that the first five passages hold all the evidence is lower, the answer has none "
            "and says that it is insufficient. 'auto': the level at which about one right answer in ten is "
            "withheld; `sufficiency_level` shows it. Only with strategy 'graph' and profile 'default'."
        ),
    )
    collapse_duplicates: StrictBool | None = Field(
        default=None,
        description=(
            "Whether passages with nearly the text of a better one are left out and named on that one. "
            "Null: they are, but not in profile 'paper'."
        ),
    )
    include: list[Include] = Field(
        default_factory=list,
        max_length=10,
        description=(
            "'sentences': all sentences of each passage; 'entities'; 'trace'; 'context': what stands around each "
            "passage in its document; 'sufficiency_level': the level of 'auto', which then withholds nothing."
        ),
    )
    context: ContextIn | None = Field(
        default=None, description="How much context each passage gets; needs no `include` besides."
    )
    expansions: list[ExpansionIn] = Field(
        default_factory=list,
        max_length=MAX_EXPANSIONS,
        description=(
            "Widen what passage keys are compared with: all together weigh as much as the question. Entities, "
            "sentences and what is remembered of the question go by its own words. Embedding them takes its time; "
            "sent with a verdict instead, they evolve the keys, and later questions need none."
        ),
    )

    trace_id: TraceId | None = Field(
        default=None,
        description=(
            "Your id of the trace or the message that this is for, by which scores find it (integrations/pull). "
            "Absent: the trace id of the `traceparent` header, if there is one."
        ),
    )

    def to_query(self, scope: Scope, parent_trace: str | None = None) -> Query:
        """The question as the service takes it; ``parent_trace`` is the trace id of the request's headers."""
        context = self.context or (ContextIn() if "context" in self.include else None)
        return Query(
            text=self.query,
            scope=scope,
            top_k=self.top_k,
            max_hops=self.max_hops,
            memory=self.arm.memory,
            profile=self.arm.profile,
            strategy=self.arm.strategy,
            stop_rule=self.stop_rule,
            min_sufficiency=self.min_sufficiency,
            filter=self.filter,
            time_constraint=None if self.time_constraint is None else self.time_constraint.strip(),
            include=frozenset(self.include),
            expansions=[Expansion(expansion.method, expansion.text) for expansion in self.expansions],
            caller_chose_arm="arm" in self.model_fields_set,
            unit=self.unit,
            collapse_duplicates=self.collapse_duplicates,
            trace_id=self.trace_id or parent_trace,
            parts=() if context is None else (context.to_part(),),
        )


class JointQueryIn(QueryIn):
    """A question to one collection, or to several."""

    collections: list[CollectionName] = Field(
        default_factory=list,
        max_length=MOST_COLLECTIONS,
        description=(
            "In place of `collection`, which does not count then: several, whose passages are merged into one "
            "list. Each keeps the query under the answer's `query_id`, and takes verdicts on its own passages."
        ),
    )

    @model_validator(mode="after")
    def _name_each_once(self) -> Self:
        if self.collections:
            if len(set(self.collections)) < len(self.collections):
                raise ValueError("collections names one twice")
            self.collection = self.collections[0]
        return self


class BatchIn(Model):
    """Several questions in one request."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"queries": [QUERY_EXAMPLES[0], {"collection": "sample", "query": "Titan?"}]}]
        }
    )

    queries: list[QueryIn] = Field(min_length=1, max_length=MAX_QUERIES)


class AnswerIn(QueryIn):
    """A question to answer in words."""
