"""Serving modes of a collection: live or shadow, arms of an experiment, exploration.

The rule stands between those who ask and ``QueryService``; whoever has to see what memory does, whatever the
collection is set to, asks that service directly.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import UUID

import structlog

from engram.context.errors import InvalidRequestError
from engram.core.experiments import assignment
from engram.core.experiments import exploration as core
from engram.core.ranking.profiles import PROFILES, ProfileName
from engram.services.auth.scope import Scope
from engram.services.queries.query_service import QueryService
from engram.services.retrieval.answer import Answer
from engram.services.retrieval.query import ExplorationSettings, Memory, Query, Strategy
from engram.services.retrieval.query_plan import create_query_id
from engram.storage.corpus import collections
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database

log = structlog.get_logger(__name__)

Serving = Literal["live", "shadow"]
SLOTS = 1
"""Positions that an exploration takes where nothing is said of them."""


@dataclass(frozen=True, slots=True)
class ExperimentArm:
    """An arm of an experiment: ``percent`` of the units are served like this."""

    name: str
    percent: float
    memory: Memory
    profile: ProfileName
    strategy: Strategy


class ServingService:
    """Serves queries by their collection's settings, and changes those."""

    def __init__(self, database: Database, ask: QueryService) -> None:
        self._database = database
        self._ask = ask

    def query(self, query: Query) -> Answer:
        """Answer a question as the collection's settings have it.

        Raises:
            NotFoundError, InvalidRequestError, LlmNotConfiguredError, LlmError: as ``QueryService.query``.
        """
        return self._ask.query(apply_settings(query))

    def configure(self, scope: Scope, patch: Mapping[str, Any]) -> Collection:
        """Change what the patch names of a collection's settings, by the rules of JSON Merge Patch (RFC 7396):
        what is absent stays, None clears, objects are merged, lists replaced.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
            InvalidRequestError: what comes of the patch is not a setting.
        """
        target = scope.collection
        with self._database.write() as writer:
            if not collections.lock_graph(writer, target.id):
                raise collections.build_gone_error(target.name)
            collection = collections.load_by_id(writer, target.id)
            before = {
                "serving": collection.serving,
                "experiment": collection.experiment,
                "exploration": collection.exploration,
                "corpus_kind": collection.fixed_kind,
                "passage_facts": collection.passage_facts,
            }
            after = merge_patch({key: value for key, value in before.items() if value is not None}, patch)
            collections.configure(
                writer,
                collection.id,
                serving=after.get("serving", "live"),
                experiment=_experiment(after.get("experiment")),
                exploration=_exploration(after.get("exploration")),
                fixed_kind=after.get("corpus_kind"),
                passage_facts=after.get("passage_facts", "off"),
            )
            changed = collections.load_by_id(writer, collection.id)
        log.info("collection configured", collection=target.name, **{key: after.get(key) for key in before})
        return changed


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


def merge_patch(target: Any, patch: Any) -> Any:
    """The target changed by a JSON Merge Patch (RFC 7396, section 2)."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def _experiment(value: Any) -> Mapping[str, Any] | None:
    """The experiment as it is kept, every arm in full."""
    if value is None:
        return None
    arms = value.get("arms")
    if not arms:
        raise InvalidRequestError("An experiment has at least one arm.")
    names = [arm["name"] for arm in arms]
    if len(set(names)) < len(names):
        raise InvalidRequestError("The arms of an experiment have names of their own.")
    try:
        assignment.segments([arm["percent"] for arm in arms])
    except ValueError as error:
        raise InvalidRequestError(f"experiment: {error}.") from error
    defaults = {"memory": "read", "profile": "default", "strategy": "graph"}
    return {"arms": [defaults | dict(arm) for arm in arms]}


def _exploration(value: Any) -> Mapping[str, Any] | None:
    """The exploration as it is kept, in full."""
    if value is None:
        return None
    if value.get("share") is None:
        raise InvalidRequestError("An exploration has a share of queries.")
    return {"share": value["share"], "slots": value.get("slots", SLOTS), "seed": value.get("seed")}
