"""An encoder that is loaded when it first embeds something."""

import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from engram.providers.embedder.encoder_protocol import Embedder, choose_token_test


class LateEmbedder:
    """Stands for an encoder whose identity is known, and loads it on first use. Threads may share it."""

    def __init__(self, model: str, fingerprint: str, dimension: int, load: Callable[[], Embedder]) -> None:
        """Load nothing yet.

        Args:
            model: name of the encoder.
            fingerprint: of its vectors.
            dimension: of its vectors.
            load: loads it. It may raise ``ConfigurationError``, and is called again then.
        """
        self.model = model
        self.fingerprint = fingerprint
        self.dimension = dimension
        self._load = load
        self._lock = threading.Lock()
        self._loaded: Embedder | None = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit-length vectors, shape (n, d), in the order of ``texts``; (0, d) for no texts, without loading.

        Raises:
            ConfigurationError: the encoder cannot be loaded.
        """
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        return self._embedder().embed(texts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text that ``embed`` would read, without those of overlaps and special ones."""
        return self._embedder().count_tokens(texts)

    @property
    def is_one_token(self) -> Callable[[str], bool]:
        """Tells whether a word is one token."""
        return choose_token_test(self._embedder())

    def _embedder(self) -> Embedder:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded
