"""The encoder as all tests have it: asked once about each text."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.providers.embedder import Embedder
from app.storage.corpus.collections import EncoderId

SOME = EncoderId("some", "5" * 64)
"""Of collections whose vectors are of no matter."""


class Turned:
    """Another encoder of the same dimension: what it says of two texts is the same, and its vectors are others."""

    def __init__(self, encoder: Embedder) -> None:
        self._encoder = encoder
        self.model, self.fingerprint, self.dimension = "turned", "7" * 64, encoder.dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The encoder's, its axes in the opposite order."""
        return np.ascontiguousarray(self._encoder.embed(texts)[:, ::-1])


class Remembering:
    """An encoder that runs once for each text: tests ingest the same few passages more than a thousand times."""

    def __init__(self, encoder: Embedder) -> None:
        self._encoder = encoder
        self._known: dict[str, NDArray[np.float32]] = {}
        self.model, self.fingerprint, self.dimension = encoder.model, encoder.fingerprint, encoder.dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As the encoder's."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known.update(zip(new, self._encoder.embed(new), strict=True))
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._known[text]
        return vectors
