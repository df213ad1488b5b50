"""Entities of facts and predicates on the wire."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from engram.api.schemas import (
    DEFAULT_COLLECTION,
    CollectionName,
    Flag,
    JudgeName,
    Model,
    ResponseModel,
    RowId,
    Text,
)
from engram.wings.facts.api.fact_out_schemas import EntityRef, FactOut
from engram.wings.facts.api.fact_schemas import GraphName
from engram.wings.facts.services.fact_views import Neighbourhood


class FactEntityOut(BaseModel):
    """An entity with the facts around it."""

    entity_id: int
    name: str
    stands_for: EntityRef | None = Field(description="The entity that it was merged into.")
    merged: list[EntityRef]
    facts: list[FactOut]

    @classmethod
    def from_service(cls, around: Neighbourhood) -> "FactEntityOut":
        """Build the response from the service's result."""
        root = around.stands_for
        return cls(
            entity_id=around.entity.id,
            name=around.entity.surface,
            stands_for=None if root is None else EntityRef(entity_id=root.id, name=root.surface),
            merged=[EntityRef(entity_id=one.id, name=one.surface) for one in around.merged],
            facts=[FactOut.from_service(row) for row in around.facts],
        )


class MergeIn(Model):
    """Entities that are one with another."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"entities": [12]}]})

    collection: CollectionName = DEFAULT_COLLECTION
    judge: JudgeName | None = Field(
        default=None, description="By default the access key's judge; another takes the scope `judge-as`."
    )
    entities: Annotated[list[RowId], Field(min_length=1, max_length=100)]


class SplitIn(Model):
    """Collection of the entity."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}]})

    collection: CollectionName = DEFAULT_COLLECTION


class PredicateIn(Model):
    """Whether a subject has one object at a time under a predicate."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"predicate": "place of birth", "functional": True}]})

    collection: CollectionName = DEFAULT_COLLECTION
    graph: GraphName = None
    predicate: Annotated[Text, Field(max_length=100)]
    functional: Flag | None = Field(description="null: let counts say.")


class CountIn(Model):
    """Collection and graph whose predicates are counted."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}]})

    collection: CollectionName = DEFAULT_COLLECTION
    graph: GraphName = None


class PredicateOut(ResponseModel):
    """A predicate, and by what its facts compete."""

    predicate: str
    functional: bool
    declared: bool | None
    subjects: int = Field(description="When it was last counted.")
    single: int = Field(description="Of them, with one object at a time.")


class PredicatesOut(BaseModel):
    """Predicates in their order."""

    collection: str
    predicates: list[PredicateOut]
