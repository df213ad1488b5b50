"""The classifier that stops sessions as RFM-RAG does: its weights, a file, and a cross-encoder, a folder."""

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from engram.context.errors import ConfigurationError
from engram.core.planning.feedback_stop import FEATURES, Network
from engram.core.planning.round_sufficiency import FEATURES as ROUND_FEATURES
from engram.core.ranking.ranking_weights import Prior
from engram.providers.ranking_prior import read_prior

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


class CrossEncoder:
    """A cross-encoder of sentence-transformers, from a folder; its score as a probability (one class, sigmoid)."""

    def __init__(self, folder: Path, setting: str = "ENGRAM_CROSS_ENCODER") -> None:
        """Read the folder.

        Args:
            setting: that names it, for messages.

        Raises:
            ConfigurationError: sentence-transformers is not installed, or the folder is none of its cross-encoders
                with one class.
        """
        try:
            import torch
            from sentence_transformers import CrossEncoder as Loaded
        except ImportError as error:
            raise ConfigurationError(
                f"{setting} needs the extra 'encoders': pip install 'engram[encoders]'."
            ) from error
        self._name = cross_encoder_name(folder, setting)
        try:
            self._model = Loaded(str(folder), local_files_only=True, activation_fn=torch.nn.Sigmoid(), device="cpu")
        except (OSError, ValueError, RuntimeError) as error:
            raise ConfigurationError(f"{setting}: {folder} cannot be read: {error}") from error
        if self._model.num_labels != 1:
            raise ConfigurationError(
                f"{setting}: {folder} tells {self._model.num_labels} classes; one score is needed."
            )
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The folder's name and a fingerprint of its weights."""
        return self._name

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Score each text, in [0, 1]."""
        if not texts:
            return []
        with self._lock:
            scores = self._model.predict([(question, text) for text in texts], show_progress_bar=False)
        return [float(score) for score in np.asarray(scores).reshape(-1)]


def cross_encoder_name(folder: Path, setting: str) -> str:
    """The folder's name and a fingerprint of its weights.

    Raises:
        ConfigurationError: it is no model folder.
    """
    if not (folder / "config.json").is_file():
        raise ConfigurationError(f"{setting}: {folder} is no model folder: it has no config.json.")
    return f"{folder.name} {_fingerprint(folder)}"


@dataclass(frozen=True, slots=True)
class StopWeights:
    """The classifier, what its second feature went by and the data sets it was fitted to.

    ``rounds`` is what is believed of the pool after a round before any verdict on a session, see
    ``core.planning.round_sufficiency``;
    None where nothing was fitted for that.
    """

    network: Network
    relevance: str
    fitted: tuple[str, ...]
    rounds: Prior | None = None


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
    if tuple(content["features"]) != FEATURES:
        raise ValueError(f"its features are not {', '.join(FEATURES)}")
    parts = [np.array(content["mean"], dtype=np.float64)]
    if "hidden" in content:
        parts += [np.array(content[name], dtype=np.float64) for name in ("hidden", "out")]
    rounds = read_prior(content["rounds"], ROUND_FEATURES) if "rounds" in content else None
    return StopWeights(Network(*parts), str(content["relevance"]), tuple(map(str, content["fitted"])), rounds)


def _fingerprint(folder: Path) -> str:
    """Hash the weight files, whatever they are called."""
    digest = hashlib.sha256()
    for path in sorted((*folder.glob("*.safetensors"), *folder.glob("*.bin"))):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
