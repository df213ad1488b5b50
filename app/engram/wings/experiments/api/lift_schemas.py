"""Schemas of the results of arms."""

from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from engram.api.schemas import ResponseModel
from engram.wings.experiments.services.lift_service import ArmLift, Lift


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
    generation_success: FigureOut = Field(description="The verdict's word, else whether its score reaches 0.5.")
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
            "The experiment's in its order, then former ones that were asked by name, then queries without an arm. "
            "That last one was not drawn by chance if callers chose arms themselves."
        )
    )

    @classmethod
    def from_service(cls, lift: Lift) -> Self:
        """The report as it is shown."""
        return cls.combine(lift, arms=[ArmLiftOut.from_service(arm) for arm in lift.arms])
