"""Schemas of serving and of the results of arms."""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, StrictInt

from engram.api.schemas import MAX_ID, Model, ResponseModel, Text, Whole
from engram.core.experiments import assignment
from engram.core.ranking.corpus_kind import CorpusKind, PassageFacts
from engram.core.ranking.profiles import ProfileName
from engram.services.corpus.collection_settings import Serving
from engram.services.experiments.measured_lift import ArmLift, Lift
from engram.services.retrieval.query import Memory, Strategy

MAX_ARMS = 20
MAX_SLOTS = 10
SERVING_EXAMPLES: list[JsonValue] = [
    {"serving": "shadow"},
    {
        "serving": "live",
        "experiment": {
            "arms": [
                {"name": "without", "percent": 10, "memory": "off"},
                {"name": "with", "percent": 10, "memory": "read"},
            ]
        },
    },
    {"exploration": {"share": 0.05, "slots": 1, "seed": 7}},
    {"experiment": None},
    {"corpus_kind": "general"},
    {"passage_facts": "on"},
]


class ExperimentArmIn(Model):
    """An arm: how a part of the units is served."""

    name: Text = Field(max_length=100)
    percent: float = Field(ge=0, le=100, strict=True, description="Of all units; nobody is asked by an arm of 0.")
    memory: Memory = "read"
    profile: ProfileName = "default"
    strategy: Strategy = "graph"


def _check_arms(arms: list[ExperimentArmIn]) -> list[ExperimentArmIn]:
    names = [arm.name for arm in arms]
    if len(set(names)) < len(names):
        raise ValueError("must have names of their own")
    assignment.segments([arm.percent for arm in arms])
    return arms


class ExperimentIn(Model):
    """Arms that queries are given which say none themselves."""

    arms: Annotated[
        list[ExperimentArmIn], Field(min_length=1, max_length=MAX_ARMS), AfterValidator(_check_arms)
    ] = Field(description="Percentages add up to 100 at most; what is left over goes to no arm.")


class ExplorationIn(Model):
    """Exploration of low-ranked passages in answers."""

    share: float | None = Field(default=None, ge=0, le=1, strict=True, description="Of the queries, in [0, 1].")
    slots: Annotated[StrictInt, Field(ge=1, le=MAX_SLOTS), Whole] | None = Field(
        default=None, description="Positions at the end of an answer, at most; never its first. By default 1."
    )
    seed: Annotated[StrictInt, Field(ge=0, le=MAX_ID), Whole] | None = Field(
        default=None,
        description=(
            "With a seed, draws follow from it, the unit (without one the query's id) and the question's text, and "
            "can be made again; without one, from the query's id."
        ),
    )


class CollectionPatch(Model):
    """Changes of how a collection serves; an absent field stays, null clears."""

    model_config = ConfigDict(json_schema_extra={"examples": SERVING_EXAMPLES})

    serving: Serving | None = Field(
        default=None,
        description="'live'; 'shadow': it learns, and serves without memory whatever a query says. Null: 'live'.",
    )
    experiment: ExperimentIn | None = Field(default=None, description="Replaces the arms as a whole. Null: none.")
    exploration: ExplorationIn | None = Field(default=None, description="Null: none.")
    corpus_kind: CorpusKind | None = Field(
        default=None,
        description="Which ranking weights it starts from, if you know better than its titles and questions tell. "
        "Null: they do.",
    )

    passage_facts: PassageFacts | None = Field(
        default=None,
        description="Which passages facts are read from at ingest: 'on': those about their title, as pages of an "
        "encyclopedia are; 'off', and null: none.",
    )

    def patch(self) -> dict[str, Any]:
        """Return the given fields, null included."""
        return self.model_dump(exclude_unset=True)


class DifferenceOut(ResponseModel):
    """An arm's figure less the baseline's, with a 95% interval where the numbers give one."""

    value: float
    low: float | None
    high: float | None


class FigureOut(BaseModel):
    """The mean of a figure."""

    mean: float | None = Field(description="Null if no query has it.")
    n: int = Field(description="Queries that have it.")
    difference: DifferenceOut | None = Field(
        description="From the baseline; null for the baseline itself, and where either has no such query."
    )


class ArmLiftOut(ResponseModel):
    """Results of one arm."""

    arm: str | None = Field(description="Null: queries that no arm was given to, for whatever reason.")
    queries: int
    judged: int = Field(description="Queries that a verdict counts for: of several, the one applied last.")
    unjudged: int = Field(
        description=(
            "Queries that no verdict was ever accepted for: nothing is known of them, and they need not be like "
            "the judged ones."
        )
    )
    retrieval_success: FigureOut = Field(
        description="The verdict's word, else whether a passage that it supports was in the answer."
    )
    evidence_recall: FigureOut = Field(
        description="Of the passages that the verdict supports or calls missed, the share that was in the answer."
    )
    reciprocal_rank: FigureOut = Field(description="Of the first of these passages; 0 if none was in the answer.")
    generation_success: FigureOut = Field(
        description="The verdict's word, else whether its score reaches ENGRAM_PASSAGE_KEY_GENERATION_THRESHOLD."
    )
    hops: FigureOut = Field(description="Of all queries, judged or not.")
    median_total_ms: float | None = Field(description="Of all queries.")

    @classmethod
    def from_service(cls, arm: ArmLift) -> Self:
        """The arm as it is shown."""
        differences = arm.differences or {}
        figures = {
            name: FigureOut.model_validate({"mean": seen.mean, "n": seen.n, "difference": differences.get(name)})
            for name, seen in arm.figures.items()
        }
        return cls.combine(arm, **figures)


class LiftOut(ResponseModel):
    """The arms of a collection, side by side."""

    collection: str
    since: datetime | None = Field(alias="from")
    before: datetime | None = Field(alias="to")
    baseline: str | None = Field(description="The arm that the others are compared with; null: there is no arm.")
    arms: list[ArmLiftOut] = Field(
        description=(
            "The experiment's in its order, then former ones that were asked by name, then what was given to none. "
            "That last one was not drawn by chance if callers chose arms themselves."
        )
    )

    @classmethod
    def from_service(cls, lift: Lift) -> Self:
        """The report as it is shown."""
        return cls.combine(lift, arms=[ArmLiftOut.from_service(arm) for arm in lift.arms])
