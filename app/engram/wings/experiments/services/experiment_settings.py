"""Settings of experiments in a collection, as they are stored: every arm and every exploration in full."""

from collections.abc import Mapping
from typing import Any

from engram.context.errors import InvalidRequestError
from engram.wings.experiments.core import assignment

SLOTS = 1
"""Positions that an exploration takes where nothing is said of them."""


def complete_experiment(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Check an experiment, and complete its arms.

    Raises:
        InvalidRequestError: it is none.
    """
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


def complete_exploration(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Check an exploration, and complete it.

    Raises:
        InvalidRequestError: it is none.
    """
    if value.get("share") is None:
        raise InvalidRequestError("An exploration has a share of queries.")
    return {"share": value["share"], "slots": value.get("slots", SLOTS), "seed": value.get("seed")}
