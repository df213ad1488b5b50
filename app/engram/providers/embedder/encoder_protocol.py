"""Interface of encoders, and how one is loaded."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from engram.context.errors import ConfigurationError
from engram.providers.embedder.int8_weights import Precision


class Embedder(Protocol):
    """A sentence encoder; safe to call from several threads at once."""

    @property
    def model(self) -> str:
        """Name recorded with collections, such as ``all-MiniLM-L6-v2``."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the weights (hex): vectors are comparable only if their fingerprints are equal."""

    @property
    def dimension(self) -> int:
        """Length d of every vector."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit-length vectors, shape (n, d), in the order of ``texts``; (0, d) for no texts.

        A text longer than the encoder's window is read in overlapping windows; of very long texts, evenly spaced
        ones are read. Between two batches it looks whether somebody still wants the vectors.

        Raises:
            DeadlineError, AbandonedError, WorkStoppedError: nobody does, see ``deadline.check_work``.
        """

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text that ``embed`` would read, without those of overlaps and special ones."""


def load_embedder(
    model: str,
    runtime: Literal["onnx", "torch"],
    cache_directory: Path,
    threads: int,
    batch_size: int,
    precision: Precision = "float32",
) -> Embedder:
    """Load an encoder from files on this machine; nothing is ever downloaded.

    ``model`` is ``all-MiniLM-L6-v2`` or a sentence-transformers model folder. With the ONNX runtime, models of
    BERT's kind need nothing more; others are exported under ``cache_directory`` by torch at their first load, in
    about 10 s, and later ones reuse the file. ``threads`` 0 lets the runtime decide; ``batch_size`` is the most
    windows encoded at once. Prompts that a model's configuration may name are not added: questions and passages are
    encoded alike.

    With ``precision`` "int8", which only the ONNX runtime has and only for models of BERT's kind, a text by itself
    takes half the time. Its vector has a cosine of .9995 or more with the other one, and the same fingerprint:
    vectors of both can be compared with each other.

    Raises ``ConfigurationError`` for a folder that is missing, incomplete, altered or that the runtime cannot
    express, in this precision.
    """
    # Imported here so that the ONNX runtime never pays for torch, and the other way round.
    from engram.providers.embedder.model_folder import open_model
    from engram.providers.embedder.token_windows import WindowedEmbedder

    folder = open_model(model)
    if runtime == "onnx":
        from engram.providers.embedder.onnx_encoder import onnx_encoder

        return WindowedEmbedder(folder, onnx_encoder(folder, cache_directory, threads, precision), batch_size)

    if precision != "float32":
        raise ConfigurationError("Eight bits are for the embedding runtime 'onnx'; torch reads 'float32'.")
    from engram.providers.embedder.torch_encoder import torch_encoder

    return WindowedEmbedder(folder, torch_encoder(folder, threads), batch_size)
