"""Settings of a collection: serving mode, experiment, exploration, kind of corpus, facts."""

from collections.abc import Mapping
from typing import Any, Literal

import structlog

from engram.context.errors import InvalidRequestError
from engram.core.experiments import assignment
from engram.services.auth.scope import Scope
from engram.storage.corpus import collections
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database

log = structlog.get_logger(__name__)

Serving = Literal["live", "shadow"]
SLOTS = 1
"""Positions that an exploration takes where nothing is said of them."""


class CollectionSettingsService:
    """Changes the settings of collections."""

    def __init__(self, database: Database) -> None:
        self._database = database

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
