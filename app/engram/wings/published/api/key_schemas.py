"""Evolving passage keys on the wire."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictInt

from engram.api.schemas import MAX_ID, Model, ResponseModel, Whole
from engram.api.verdict.schemas import KeyStatus
from engram.core.passage_keys.key_text import KeyBuilding

ROLLBACK_EXAMPLES: list[JsonValue] = [{"generation": 0}, {"generation": 3}]


class AddedTermOut(ResponseModel):
    """By how much a term's frequency in the passage's lexical key was raised."""

    term: str
    increment: float


class SourceOut(ResponseModel):
    """A verdict behind a unit of a passage's expansion memory."""

    feedback_id: int = Field(validation_alias="event_id")
    judge: str
    query_id: UUID
    question: str
    gain: float = Field(
        description="Alignment gain: how much nearer the unit brings the passage's base key to the question."
    )
    weight: float = Field(description="The unit's share among those of the same verdict that help.")
    status: KeyStatus
    generation: int | None = Field(description="The evolution that took it in; null while it waits.")


class UnitOut(ResponseModel):
    """A unit of a passage's expansion memory."""

    unit_id: int
    method: str
    text: str
    score: float | None = Field(
        description=(
            "Gain times weight, summed over the verdicts that count, those that wait included; null for a unit of "
            "the key that the memory let go for better ones, which wait."
        )
    )
    in_key: bool = Field(description="Whether the serving key is composed of it, among others.")
    terms: list[AddedTermOut] = Field(description="What it adds to the serving lexical key: the 50 most raised.")
    events: list[SourceOut] = Field(description="The 20 latest verdicts behind it, the latest first.")
    event_count: int


class KeyOut(ResponseModel):
    """A passage's key as it serves, and why."""

    passage_id: str
    collection: str
    generation: int = Field(description="The collection's serving generation; 0: base keys.")
    evolved: bool
    key_generation: int | None = Field(
        description="The latest evolution that took in evidence for this key; null for a base key."
    )
    key_building: KeyBuilding = Field(description="What the base key is made of.")
    cosine: float = Field(description="Of the serving key and the base key.")
    displacement: float = Field(description="Distance of the serving key from the base key, both of length 1.")
    displacement_bound: float = Field(description="What the displacement cannot exceed.")
    terms: list[AddedTermOut] = Field(description="What the units add to the lexical key: the 50 most raised.")
    term_count: int
    units: list[UnitOut] = Field(description="The passage's expansion memory, best first.")
    unit_count: int


class GenerationOut(ResponseModel):
    """One evolution of a collection's keys."""

    number: int
    parent: int = Field(description="The generation it went on from; 0: base keys.")
    active: bool = Field(description="Whether what it took in counts: false once rolled back.")
    reason: str = Field(
        description=(
            "saturated: several batches of verdicts in a row brought nothing better; pending: "
            "64 verdicts waited; requested: by POST /collections/{name}/evolve."
        )
    )
    rules: dict[str, Any] = Field(description="The constants its keys were composed with.")
    events: int = Field(description="Verdicts it took in.")
    passages: int = Field(description="Passages whose keys it composed.")
    created_at: datetime


class GenerationsOut(BaseModel):
    """A page of generations, the latest first."""

    collection: str
    generations: list[GenerationOut]
    next_before: int | None = Field(description="Pass as before for the next page; null at the end.")


class KeysOut(BaseModel):
    """Standing of a collection's passage keys, and the verdicts that wait for the next evolution."""

    collection: str
    generation: int = Field(description="The serving generation; 0: base keys.")
    waiting: int = Field(description="Validated verdicts that no evolution took in yet.")
    batch_events: int = Field(description="Of these, in the batch that is not full yet.")
    batch_gain: float = Field(description="The highest alignment gain in that batch.")
    best_gain: float = Field(description="The highest alignment gain of any full batch since the last evolution.")
    stale_batches: int = Field(description="Batches in a row that brought nothing better.")
    due: str | None = Field(description="Why an evolution is due: saturated or pending; null if none is.")


class EvolveOut(BaseModel):
    """Result of an evolution."""

    collection: str
    changed: bool = Field(description="False where nothing waited that moves a key.")
    serving: int = Field(description="The serving generation; 0: base keys.")
    generation: GenerationOut | None = Field(description="The new generation; null where nothing changed.")


class RollbackIn(Model):
    """The generation to serve."""

    model_config = ConfigDict(json_schema_extra={"examples": ROLLBACK_EXAMPLES})

    generation: Annotated[StrictInt, Field(ge=0, le=MAX_ID), Whole] = Field(
        description="A generation of the collection, earlier or later than the serving one; 0: base keys."
    )
