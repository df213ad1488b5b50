"""Access to an encoder for tuning: its weights, its tokens of questions, and vectors with an adapter.

Encoders whose graph is written here (``bert_graph``) can be tuned, in the precisions "float32" and "int8". An
adapter is learned from weights in float32 and serves both. "dynamic-int8" embeds passages; its questions are in
float32.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engram.context.errors import EngramError
from engram.providers.embedder.bert_graph import EMBEDDINGS, Shape
from engram.providers.embedder.encoder_protocol import Embedder
from engram.providers.embedder.model_folder import ModelFolder
from engram.providers.embedder.weight_files import WeightArray

if TYPE_CHECKING:
    from engram.providers.embedder.token_windows import WindowedEmbedder

LoadedAdapter = Any
"""``onnxruntime.LoraAdapter``, which is not imported where no encoder runs."""


class EncoderNotTunableError(EngramError):
    """The question encoder cannot be tuned: its weights are at an embedding server, or are none of BERT's kind."""

    status = 409
    type = "encoder-not-tunable"
    title = "The encoder cannot be tuned"


@dataclass(frozen=True)
class QuestionWeights:
    """Weights to learn from, in float32, by published name.

    Attributes:
        arrays: weights; the word table has the rows of ``vocabulary`` alone.
        vocabulary: token ids of these rows, ascending.
        shape: of the model.
        pooling: "mean" or "cls".
        fingerprint: of the weights (SHA-256, hex).
        dimension: numbers that are kept of each vector; None: all.
    """

    arrays: dict[str, WeightArray]
    vocabulary: NDArray[np.int64]
    shape: Shape
    pooling: str
    fingerprint: str
    dimension: int | None


@dataclass(frozen=True)
class QuestionTuning:
    """The question side of an encoder that takes adapters. Threads may share it.

    Attributes:
        folder: of the model.
        shape: of the model.
        adapted_layers: the last so many layers take an adapter's arrays.
        encode: token ids and mask, both (b, t), with an adapter to vectors (b, d).
        load_adapter: makes an adapter for ``embed`` of the arrays that were learned, by name.
        windows: embedder of the same model.
        prefix: put before each question.
        dimension: numbers that are kept of each vector; None: all.
    """

    folder: ModelFolder
    shape: Shape
    adapted_layers: int
    encode: Callable[[NDArray[np.int64], NDArray[np.int64], LoadedAdapter], NDArray[np.float32]]
    load_adapter: Callable[[dict[str, NDArray[np.floating]]], LoadedAdapter]
    windows: "WindowedEmbedder"
    prefix: str = ""
    dimension: int | None = None

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the weights (SHA-256, hex), which adapters belong to: the same in all precisions."""
        return self.folder.fingerprint

    def read_weights(self, token_ids: Sequence[NDArray[np.int64]]) -> QuestionWeights:
        """Read the weights from the model's file, with the words of these token ids alone.

        Raises:
            ConfigurationError: the file cannot be read.
        """
        if self.folder.weights is None:
            raise EncoderNotTunableError(f"{self.folder.model} has no file of weights that can be read.")
        vocabulary = np.unique(np.concatenate(token_ids))
        words = f"{EMBEDDINGS}.word_embeddings.weight"
        arrays = dict(self.folder.weights.read_rows(words, vocabulary.tolist()))
        pooling = self.folder.pooling[0]
        return QuestionWeights(arrays, vocabulary, self.shape, pooling, self.fingerprint, self.dimension)

    def tokenise(self, texts: Sequence[str], most_tokens: int) -> list[NDArray[np.int64]]:
        """Token ids of each question, with prefix and special tokens, cut to ``most_tokens``."""
        return self.windows.read_first_tokens([self.prefix + text for text in texts], most_tokens)

    def embed(self, texts: Sequence[str], adapter: LoadedAdapter | None) -> NDArray[np.float32]:
        """Unit-length vectors of questions with an adapter, shape (n, d), in the order of ``texts``."""

        def encode(token_ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
            return self.encode(token_ids, mask, adapter)

        vectors = self.windows.embed_with(encode, [self.prefix + text for text in texts])
        if self.dimension is None:
            return vectors
        cut = vectors[:, : self.dimension]
        shortened: NDArray[np.float32] = cut / np.linalg.norm(cut, axis=1, keepdims=True)
        return shortened


def find_question_tuning(embedder: Embedder) -> QuestionTuning | None:
    """The tuning of an encoder; None if it cannot be tuned."""
    tuning: QuestionTuning | None = getattr(embedder, "question_tuning", None)
    return tuning


def choose_question_tuning(embedder: Embedder) -> QuestionTuning:
    """The tuning of an encoder.

    Raises:
        EncoderNotTunableError: it cannot be tuned.
    """
    tuning = find_question_tuning(embedder)
    if tuning is None:
        raise EncoderNotTunableError(
            f"{embedder.model} cannot be tuned: Engram needs the weights of a model of BERT's kind on this "
            "machine, read by the embedding runtime 'onnx'. An embedding server keeps its weights to itself."
        )
    return tuning
