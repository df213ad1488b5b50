"""Whole graphs of facts on the wire: merged, aligned, and revocations of all that judges said of them."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from engram.api.schemas import DEFAULT_COLLECTION, CollectionName, Flag, JudgeName, Model, Moment, ResponseModel
from engram.wings.facts.api.fact_out_schemas import EventOut
from engram.wings.facts.api.fact_schemas import GraphName
from engram.wings.facts.services.entity_alignment import ProposedJoin
from engram.wings.facts.services.fact_retraction import FactEventFilter, FactRetraction
from engram.wings.facts.services.graph_merge import GraphMergeResult

Kind = Literal["confirm", "contradict", "supersede", "close", "merge"]
MOST_SHOWN = 1_000


class GraphMergeIn(Model):
    """A graph of facts that is merged into another one."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"graph": "mine"}]})

    collection: CollectionName = DEFAULT_COLLECTION
    graph: Annotated[CollectionName, Field(description="What is merged; it stays as it is.")]
    into: GraphName = None
    judge: JudgeName | None = Field(
        default=None, description="Who merges; by default the access key's judge, another takes `judge-as`."
    )


class GraphMergeOut(ResponseModel):
    """Result of a merge: the counts of new rows."""

    collection: str
    event: EventOut
    facts: int = Field(description="Facts that the sentences say.")
    sentences: int
    verdicts: int
    joins: int = Field(description="Entities that are one there, and now here.")

    @classmethod
    def from_service(cls, collection: str, adopted: GraphMergeResult) -> "GraphMergeOut":
        """Build the response from the service's result."""
        return cls.combine(adopted, collection=collection, facts=len(adopted.facts))


class FactRevokeIn(Model):
    """Criteria of the verdicts on facts to revoke: those that meet all of them, or `all`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"judge": "crawler", "from": "2026-05-01T00:00:00Z", "preview": True}]}
    )

    collection: CollectionName = DEFAULT_COLLECTION
    graph: Annotated[CollectionName | None, Field(description="Only of this graph; null: of all graphs.")] = None
    judge: JudgeName | None = Field(default=None, description="Only what this judge said.")
    since: Moment | None = Field(default=None, alias="from", description="Only what was received then or later.")
    before: Moment | None = Field(default=None, alias="to", description="Only what was received before.")
    kinds: list[Kind] = Field(
        default=["confirm", "contradict", "supersede", "close"],
        min_length=1,
        max_length=5,
        description="Only these; `merge` are entities that joined, of judge `alignment` where nobody said so.",
    )
    all: Flag = Field(default=False, description="Everything that judges said.")
    preview: Flag = Field(default=False, description="Only tell what it would change.")
    by: JudgeName | None = Field(
        default=None, description="Who revokes; by default the access key's judge, another takes `judge-as`."
    )

    @model_validator(mode="after")
    def _say_which(self) -> Self:
        """An empty request is more likely a slip than a wish to revoke everything."""
        if self.all == any(
            condition is not None for condition in (self.judge, self.since, self.before, self.graph)
        ):
            raise ValueError("say which by judge, graph, from or to, or else all")
        return self

    def criteria(self) -> FactEventFilter:
        """Return the criteria for the service."""
        return FactEventFilter(tuple(sorted(set(self.kinds))), self.judge, self.since, self.before)


class FactChangeOut(ResponseModel):
    """Belief of a fact before and after."""

    fact_id: int
    before: float
    after: float


class FactRevokeOut(ResponseModel):
    """Result of a revocation. Revoking its event makes all of it count again."""

    collection: str
    event: EventOut | None = Field(description="null for a preview, or if nothing matched.")
    revoked: int = Field(description="Events that count no more; of a preview, that would.")
    kinds: dict[str, int]
    facts: int = Field(
        description="Facts of which something else is believed. A preview leaves out joins' effects."
    )
    doubted: int = Field(description="Of them, those that are doubted by it.")
    believed: int = Field(description="Of them, those that are doubted no more.")
    changed: list[FactChangeOut] = Field(description="Those that move most.")

    @classmethod
    def from_service(cls, collection: str, done: FactRetraction) -> "FactRevokeOut":
        """Build the response from the service's result."""
        return cls.combine(done, collection=collection, revoked=sum(done.kinds.values()))


class AlignIn(Model):
    """The graph whose names are to be joined where they mean the same."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"preview": True}]})

    collection: CollectionName = DEFAULT_COLLECTION
    graph: GraphName = None
    preview: Flag = Field(default=False, description="Only tell which.")


class ProposedOut(ResponseModel):
    """A name that means an entity."""

    entity_id: int = Field(validation_alias="joining")
    name: str = Field(validation_alias="joining_name")
    means_id: int = Field(validation_alias="staying")
    means: str = Field(validation_alias="staying_name")
    way: Literal["alias", "similarity"]
    similarity: float


class AlignOut(BaseModel):
    """Names that mean the same."""

    collection: str
    joined: int = Field(description="How many; of a preview, how many would be.")
    joins: list[ProposedOut] = Field(description=f"The first {MOST_SHOWN}.")

    @classmethod
    def from_service(cls, collection: str, joins: list[ProposedJoin]) -> "AlignOut":
        """Build the response from the service's result."""
        return cls(collection=collection, joined=len(joins), joins=joins[:MOST_SHOWN])
