"""The weights of the classifier that stops sessions as RFM-RAG does, from a file."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from engram.context.errors import ConfigurationError
from engram.core.ranking.weight_beliefs import Floats
from engram.wings.sessions.core.feedback_stop import STOP_FEATURES
from engram.wings.sessions.core.round_sufficiency import ROUND_FEATURES

SHIPPED_FILE = Path(__file__).parents[1] / "stop_weights.json"
COSINE = "cosine"
"""The second feature by the bi-encoder: a deviation from the paper, which has a cross-encoder."""


class Relevance(Protocol):
    """Relevance of texts to a question, in [0, 1]; safe to call from several threads at once."""

    @property
    def name(self) -> str:
        """Name that fitted weights record."""

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Score each of the texts."""


@dataclass(frozen=True, slots=True)
class StopWeights:
    """The classifier's weights, (3,), what its second feature went by and the data sets it was fitted to.

    ``rounds`` are the weights, (len(ROUND_FEATURES),), by which the pool suffices after a round, see
    ``wings.sessions.core.round_sufficiency``; None where nothing was fitted.
    """

    classifier: Floats
    relevance: str
    fitted: tuple[str, ...]
    rounds: Floats | None = None


def load_stop(path: Path | None = None) -> StopWeights:
    """The weights in a file, the shipped ones by default.

    Raises:
        ConfigurationError: the file cannot be read, or holds no such weights.
    """
    path = path or SHIPPED_FILE
    try:
        return _from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{path} holds no weights of a stop: {error}") from error


def _from_json(content: Mapping[str, Any]) -> StopWeights:
    rounds = _read_weights(content["rounds"], ROUND_FEATURES) if "rounds" in content else None
    fitted = tuple(map(str, content["fitted"]))
    return StopWeights(_read_weights(content, STOP_FEATURES), str(content["relevance"]), fitted, rounds)


def _read_weights(content: Mapping[str, Any], features: Sequence[str]) -> Floats:
    if tuple(content["features"]) != tuple(features):
        raise ValueError(f"its features are not {', '.join(features)}")
    weights = np.array(content["mean"], dtype=np.float64)
    if weights.shape != (len(features),) or not np.isfinite(weights).all():
        raise ValueError(f"it needs {len(features)} finite weights")
    return weights
