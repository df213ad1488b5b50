"""Serving modes of a collection: live or shadow, arms of an experiment, exploration.

The rule stands between those who ask and ``QueryService``; whoever has to see what memory does, whatever the
collection is set to, asks that service directly.
"""

from dataclasses import dataclass, replace
from uuid import UUID

import structlog

from engram.core.experiments import assignment
from engram.core.experiments import exploration as core
from engram.core.ranking.profiles import PROFILES, ProfileName
from engram.services.queries.query_service import QueryService
from engram.services.retrieval.answer import Answer
from engram.services.retrieval.query import ExplorationSettings, Memory, Query, Strategy
from engram.services.retrieval.query_plan import create_query_id
from engram.storage.corpus.collections import Collection

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ExperimentArm:
    """An arm of an experiment: ``percent`` of the units are served like this."""

    name: str
    percent: float
    memory: Memory
    profile: ProfileName
    strategy: Strategy


class ServingService:
    """Serves queries by their collection's settings."""

    def __init__(self, ask: QueryService) -> None:
        self._ask = ask

    def query(self, query: Query) -> Answer:
        """Answer a question as the collection's settings have it.

        Raises:
            NotFoundError, InvalidRequestError, LlmNotConfiguredError, LlmError: as ``QueryService.query``.
        """
        return self._ask.query(apply_settings(query))


def apply_settings(query: Query) -> Query:
    """Return the query as the settings of its collection have it.

    In shadow there is no memory, whatever the query says, and no arm: its figures would be of something else than
    its name says. A query that says an arm itself belongs to none.
    """
    query_id = query.id or create_query_id()
    query = replace(query, id=query_id, exploring=choose_exploration(query, query_id))
    collection = query.scope.collection
    if collection.serving == "shadow":
        return replace(query, memory="off", shadow=True)
    unit = str(query_id) if query.unit is None else query.unit
    arm = None if query.caller_chose_arm else arm_of(query, collection, unit)
    if arm is None:
        return query
    return replace(query, memory=arm.memory, profile=arm.profile, strategy=arm.strategy, arm=arm.name)


def arm_of(query: Query, collection: Collection, unit: str) -> ExperimentArm | None:
    """The unit's arm of the collection's experiment, see ``core.experiments.assignment``; None if it has none.

    A query that bounds its hops goes to no arm if some arm makes no hops: that arm alone would have to refuse it,
    and the others' queries would be of another kind than its own. So it is with a query that goes by whether the
    answer is enough, if some arm does not tell.
    """
    arms = load_arms(collection)
    bounded = query.max_hops is not None or query.stop_rule is not None
    if not arms or (bounded and any(arm.strategy != "graph" for arm in arms)):
        return None
    needs_sufficiency = query.stop_rule == "learned" or query.min_sufficiency is not None
    if needs_sufficiency and not all(arm.strategy == "graph" and PROFILES[arm.profile].by_features for arm in arms):
        return None
    at = assignment.assign(collection.id, [arm.name for arm in arms], [arm.percent for arm in arms], unit)
    return None if at is None else arms[at]


def load_arms(collection: Collection) -> list[ExperimentArm]:
    """The arms of the collection's experiment; none if there is none."""
    return [] if collection.experiment is None else [ExperimentArm(**arm) for arm in collection.experiment["arms"]]


def choose_exploration(query: Query, query_id: UUID) -> ExplorationSettings | None:
    """Whether and how the query explores: a share of the queries give some positions to chance.

    If the setting has a seed, draws follow from it, the collection, the unit (without one the query's id) and the
    question, so that they can be made again. Otherwise they follow from the query's id alone.
    """
    collection = query.scope.collection
    setting = collection.exploration
    if setting is None:
        return None
    if setting["seed"] is None:
        entropy = core.entropy(str(query_id))
    else:
        unit = str(query_id) if query.unit is None else query.unit
        entropy = core.entropy(setting["seed"], collection.id, unit, query.text)
    return ExplorationSettings(setting["slots"], entropy) if core.explores(setting["share"], entropy) else None
