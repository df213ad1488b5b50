"""Measured lift: what verdicts say of the arms of a collection's experiment, side by side."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from engram.context.errors import InvalidRequestError
from engram.services.auth.scope import Scope
from engram.storage.corpus import collections
from engram.storage.database import Database
from engram.wings.experiments.core.lift import ArmDifference, Sums, mean_difference, share_difference, sums
from engram.wings.experiments.services.experiment_arms import load_arms
from engram.wings.experiments.storage import query_outcomes

SHARES = ("retrieval_success", "generation_success")
MEANS = ("evidence_recall", "reciprocal_rank", "hops")


@dataclass(frozen=True, slots=True)
class ArmLift:
    """One arm.

    Attributes:
        arm: None for queries that no arm was given to.
        judged: queries that a verdict counts for.
        unjudged: queries that no verdict was ever accepted for.
        figures: retrieval_success, generation_success, evidence_recall, reciprocal_rank (of judged queries, by what
            their verdicts speak of) and hops (of all).
        median_total_ms: None without queries.
        differences: of the figures from the baseline's; None for the baseline, and without one.
    """

    arm: str | None
    queries: int
    judged: int
    unjudged: int
    figures: Mapping[str, Sums]
    median_total_ms: float | None
    differences: Mapping[str, ArmDifference | None] | None


@dataclass(frozen=True, slots=True)
class Lift:
    """The arms of a collection: its experiment's in order, former ones by name, and queries without an arm last."""

    collection: str
    since: datetime | None
    before: datetime | None
    baseline: str | None
    arms: Sequence[ArmLift]


@dataclass(slots=True)
class _Tally:
    """Tally of an arm's queries: sums, and each query's duration for the median (4 bytes each)."""

    judged: int = 0
    unjudged: int = 0
    figures: dict[str, Sums] = field(default_factory=lambda: {name: Sums() for name in (*SHARES, *MEANS)})
    total_ms: "array[float]" = field(default_factory=lambda: array("f"))

    def add(self, rows: Sequence[Any]) -> None:
        self.judged += sum(row.judged for row in rows)
        self.unjudged += sum(not row.ever_judged for row in rows)
        self.total_ms.extend(row.total_ms for row in rows)
        columns = {
            "retrieval_success": [row.success for row in rows],
            "generation_success": [row.generated for row in rows],
            "evidence_recall": [row.recall for row in rows],
            "reciprocal_rank": [row.reciprocal_rank for row in rows],
            "hops": [row.hops for row in rows],
        }
        for name, values in columns.items():
            self.figures[name] += sums(np.array(values, dtype=np.float64))  # None becomes nan


class LiftService:
    """Compares the arms of experiments by their verdicts."""

    def __init__(self, database: Database, *, generation_threshold: float) -> None:
        self._database = database
        self._generation_threshold = generation_threshold

    def lift(self, scope: Scope, *, since: datetime | None, before: datetime | None, baseline: str | None) -> Lift:
        """The arms of the collection, by the queries answered since, and before.

        A query counts once, by the verdict that was applied last; a revoked one says nothing, and the one before
        it does again.

        Args:
            baseline: what the other arms are compared with; None for the experiment's first.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
            InvalidRequestError: no arm is called ``baseline``.
        """
        with self._database.snapshot() as reader:
            collection = collections.load_by_id(reader, scope.collection.id)
            named: list[str | None] = [arm.name for arm in load_arms(collection)]
            tallies: dict[str | None, _Tally] = {arm: _Tally() for arm in named}
            after = query_outcomes.BEGINNING
            while rows := query_outcomes.page(
                reader,
                collection.id,
                since=since,
                before=before,
                after=after,
                generation_threshold=self._generation_threshold,
            ):
                for arm in {row.arm for row in rows}:
                    tallies.setdefault(arm, _Tally()).add([row for row in rows if row.arm == arm])
                after = rows[-1].created_at, rows[-1].id
        former = sorted(arm for arm in tallies if arm is not None and arm not in named)
        order = [*named, *former, None]
        if baseline is None:
            baseline = order[0]
        elif baseline not in order:
            raise InvalidRequestError(
                f"Collection {collection.name!r} has no arm {baseline!r} and no query of one."
            )
        base = None if baseline is None else tallies[baseline]
        arms = [_arm_lift(arm, tallies.get(arm, _Tally()), None if arm == baseline else base) for arm in order]
        return Lift(collection.name, since, before, baseline, arms)


def _arm_lift(arm: str | None, tally: _Tally, base: _Tally | None) -> ArmLift:
    return ArmLift(
        arm,
        len(tally.total_ms),
        tally.judged,
        tally.unjudged,
        tally.figures,
        float(np.median(np.frombuffer(tally.total_ms, dtype=np.float32))) if tally.total_ms else None,
        None if base is None else _differences(tally.figures, base.figures),
    )


def _differences(figures: Mapping[str, Sums], baseline: Mapping[str, Sums]) -> dict[str, ArmDifference | None]:
    shares = {name: share_difference(figures[name], baseline[name]) for name in SHARES}
    return shares | {name: mean_difference(figures[name], baseline[name]) for name in MEANS}
