"""A cross-encoder of sentence-transformers, from a folder of this machine."""

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engram.context.errors import ConfigurationError


class CrossEncoder:
    """A cross-encoder of sentence-transformers, from a folder; its score as a probability (one class, sigmoid)."""

    def __init__(self, folder: Path, setting: str = "ENGRAM_SESSIONS_CROSS_ENCODER") -> None:
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


def _fingerprint(folder: Path) -> str:
    """Hash the weight files, whatever they are called."""
    digest = hashlib.sha256()
    for path in sorted((*folder.glob("*.safetensors"), *folder.glob("*.bin"))):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
