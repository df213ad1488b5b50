"""The encoder as all tests have it: asked once about each text."""

import json
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from engram.composition import models
from engram.providers.embedder import Embedder, load_precisions, onnx_encoder
from engram.providers.embedder.model_folder import DEFAULT_MODEL, open_model
from engram.providers.embedder.question_tuning import QuestionTuning, find_question_tuning
from engram.storage.corpus.collections import EncoderId
from tests.support.environment import PRECISION

HALF_PRECISION = 4e-4
"""How far half precision moves a number of a unit vector at most, and a cosine."""
VECTORS = "TESTED_VECTORS"
"""Variable that tells processes where the vectors of the default encoder are kept, see ``remember_vectors``."""
TOGETHER = 32
"""Texts that one process embeds before others may."""
SOME_ENCODER = EncoderId("some", "5" * 64, 384)
"""Of collections whose vectors are of no matter."""


class RotatedEncoder:
    """Another encoder of the same dimension: what it says of two texts is the same, and its vectors are others."""

    def __init__(self, encoder: Embedder) -> None:
        self._encoder = encoder
        self.model, self.fingerprint, self.dimension = "turned", "7" * 64, encoder.dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The encoder's, its axes in the opposite order."""
        return np.ascontiguousarray(self._encoder.embed(texts)[:, ::-1])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The encoder's."""
        return self._encoder.count_tokens(texts)


class ResizedEncoder:
    """Another encoder of another dimension: the vectors repeated, or cut, to it, at unit length."""

    def __init__(self, encoder: Embedder, dimension: int) -> None:
        self._encoder = encoder
        self.model, self.fingerprint, self.dimension = f"resized-{dimension}", f"{dimension:064x}", dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Of unit length."""
        repeats = -(-self.dimension // self._encoder.dimension)
        vectors = np.tile(self._encoder.embed(texts), (1, repeats))[:, : self.dimension]
        return np.ascontiguousarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._encoder.count_tokens(texts)


class SqueezedEncoder:
    """The encoder with a share of every vector in one direction that all texts have in common.

    Each cosine c becomes share + (1 - share) c, as with encoders whose cosines all lie near .8, and vectors keep
    unit length. The order of all cosines stays, so nothing about texts has changed.
    """

    def __init__(self, encoder: Embedder, share: float) -> None:
        self._encoder, self._share = encoder, share
        self.model, self.fingerprint = f"squeezed-{share:g}", f"{round(1000 * share) + 1:064x}"
        self.dimension = encoder.dimension + 1

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Of unit length, the common direction last."""
        vectors = np.sqrt(1.0 - self._share) * self._encoder.embed(texts)
        common = np.full((len(vectors), 1), np.sqrt(self._share))
        return np.ascontiguousarray(np.hstack([vectors, common]), dtype=np.float32)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The encoder's."""
        return self._encoder.count_tokens(texts)


class MemoisingEncoder:
    """An encoder that runs once for each text: tests ingest the same few passages more than a thousand times.

    Processes that share the file ``beside``, which is of this encoder alone, have one vector for each text: while
    one of them embeds a few texts, the others wait for what it writes.
    """

    def __init__(self, encoder: Embedder, beside: Path) -> None:
        self._encoder = encoder
        self._lock = threading.Lock()
        self._beside = sqlite3.connect(beside, timeout=600, isolation_level=None, check_same_thread=False)
        self._beside.executescript(
            "PRAGMA synchronous = OFF;"
            "CREATE TABLE IF NOT EXISTS vector (text BLOB PRIMARY KEY, vector BLOB NOT NULL)"
        )
        self._known: dict[str, NDArray[np.float32]] = {}
        self.model, self.fingerprint, self.dimension = encoder.model, encoder.fingerprint, encoder.dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As the encoder's."""
        with self._lock:  # of what is embedded at once, what else is in its batch moves the last bits
            self._known.update(self._find_cached(text for text in dict.fromkeys(texts) if text not in self._known))
            new = [text for text in dict.fromkeys(texts) if text not in self._known]
            if new:
                self._embed_alone(new)
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._known[text]
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As the encoder's."""
        return self._encoder.count_tokens(texts)

    @property
    def question_tuning(self) -> QuestionTuning | None:
        """The encoder's."""
        return find_question_tuning(self._encoder)

    def _find_cached(self, texts: Iterable[str]) -> Iterator[tuple[str, NDArray[np.float32]]]:
        for text in texts:
            row = self._beside.execute("SELECT vector FROM vector WHERE text = ?", (_key(text),)).fetchone()
            if row is not None:
                yield text, np.frombuffer(row[0], dtype=np.float32)

    def _embed_alone(self, texts: Sequence[str]) -> None:
        """Embed what no other process has embedded by the time that this one may write, a few texts at a time."""
        for at in range(0, len(texts), TOGETHER):
            self._beside.execute("BEGIN IMMEDIATE")
            with self._beside:  # which commits, or rolls back
                self._known.update(self._find_cached(texts[at : at + TOGETHER]))
                new = [text for text in texts[at : at + TOGETHER] if text not in self._known]
                self._known.update(zip(new, self._encoder.embed(new), strict=True))
                rows = [(_key(text), self._known[text].tobytes()) for text in new]
                self._beside.executemany("INSERT INTO vector VALUES (?, ?)", rows)


def remember_vectors() -> None:
    """Have this process ask the default encoder once about each text, together with all that share the file."""
    file = os.environ.get(VECTORS)
    if file is None:
        return

    def load_remembering(*arguments: Any) -> list[Embedder]:
        model, runtime, *_, precision = arguments
        if (model, runtime, precision) != (DEFAULT_MODEL, "onnx", PRECISION):
            return load_precisions(*arguments)
        open_session = onnx_encoder._open_written_session  # noqa: SLF001
        with patch.object(onnx_encoder, "_open_written_session", partial(_LaterSession, open_session)):
            first, *late = load_precisions(*arguments)
        return [MemoisingEncoder(first, Path(file)), *late]

    vars(models)["load_precisions"] = load_remembering


class _LaterSession:
    """A session that is opened for the first text whose vector nobody knows: that takes a third of a second."""

    def __init__(self, open_session: Callable[..., Any], folder: Any, file: Any, shape: Any, *more: Any) -> None:
        self._open = partial(open_session, folder, file, shape, *more)
        self._width = shape.width

    @cached_property
    def _session(self) -> Any:
        return self._open()

    def run(self, names: Any, inputs: Any, *more: Any) -> Any:
        if inputs["input_ids"].size == 1:  # no text: whoever loads the encoder asks for the length of its vectors
            return [np.zeros((1, self._width), dtype=np.float32)]
        return self._session.run(names, inputs, *more)


def _key(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class CountingEncoder:
    """An encoder whose calls are counted, with something happening before each."""

    def __init__(self, encoder: Embedder, before: Callable[[Sequence[str]], None] = lambda _: None) -> None:
        self._encoder, self.before = encoder, before
        self.model, self.fingerprint, self.dimension = encoder.model, encoder.fingerprint, encoder.dimension
        self.texts = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As the encoder's."""
        if texts:
            self.before(texts)
        self.texts += len(texts)
        return self._encoder.embed(texts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As the encoder's."""
        return self._encoder.count_tokens(texts)


def shallow(folder: Path, layers: int = 2) -> Path:
    """A model folder of the default encoder's first layers: other weights, other vectors, the same dimension."""
    source = open_model(DEFAULT_MODEL).path
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*.safetensors", "*.md", "data_config.json"))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": layers}), encoding="utf-8")
    kept = tuple(f"encoder.layer.{layer}." for layer in range(layers))
    weights = load_file(source / "model.safetensors")
    save_file(
        {name: array for name, array in weights.items() if "encoder.layer." not in name or name.startswith(kept)},
        folder / "model.safetensors",
    )
    return folder


def tiny_cross_encoder(path: Path) -> Path:
    """Write a small cross-encoder with random weights, of one class, into a new folder."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(3)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    BertForSequenceClassification(BertConfig(vocab_size=30522, num_labels=1, **shape)).save_pretrained(path)
    shutil.copy(open_model(DEFAULT_MODEL).path / "tokenizer.json", path)
    settings = {"tokenizer_class": "BertTokenizer", "model_max_length": 64}
    (path / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return path
