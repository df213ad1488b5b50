"""Arms of a collection's experiment."""

from dataclasses import dataclass

from engram.core.ranking.profiles import DEFAULT, ProfileName
from engram.services.question.query import Memory, Query, Strategy
from engram.storage.corpus.collections import Collection
from engram.wings.experiments.core import assignment


@dataclass(frozen=True, slots=True)
class ExperimentArm:
    """An arm of an experiment: ``percent`` of the units are served like this."""

    name: str
    percent: float
    memory: Memory
    profile: ProfileName
    strategy: Strategy


def find_arm(query: Query, unit: str) -> ExperimentArm | None:
    """The unit's arm of the collection's experiment, see ``assignment``; None if it has none.

    A query that bounds its hops goes to no arm if some arm makes no hops: that arm alone would have to refuse it,
    and the others' queries would be of another kind than its own. So it is with a query that goes by whether the
    answer is enough, if some arm does not tell.
    """
    collection = query.scope.collection
    arms = load_arms(collection)
    bounded = query.max_hops is not None or query.stop_rule is not None
    if not arms or (bounded and any(arm.strategy != "graph" for arm in arms)):
        return None
    needs_sufficiency = query.stop_rule == "learned" or query.min_sufficiency is not None
    if needs_sufficiency and not all(arm.strategy == "graph" and arm.profile == DEFAULT.name for arm in arms):
        return None
    at = assignment.assign(collection.id, [arm.name for arm in arms], [arm.percent for arm in arms], unit)
    return None if at is None else arms[at]


def load_arms(collection: Collection) -> list[ExperimentArm]:
    """The arms of the collection's experiment; none if there is none."""
    return [] if collection.experiment is None else [ExperimentArm(**arm) for arm in collection.experiment["arms"]]
