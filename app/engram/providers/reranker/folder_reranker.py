"""A reranker from a model folder of this machine: a cross-encoder of sentence-transformers."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path

from engram.providers.reranker.cross_encoder import CrossEncoder, cross_encoder_name
from engram.providers.reranker.reranker_protocol import RerankerError


class FolderReranker:
    """A cross-encoder with a time limit; the model is loaded when it is first asked.

    What it was too slow for is finished all the same, before it reads the next.
    """

    def __init__(self, folder: Path) -> None:
        """Look at the folder.

        Raises:
            ConfigurationError: it is no model folder.
        """
        self._folder = folder
        self._name = cross_encoder_name(folder, "ENGRAM_RERANKER_FOLDER")
        self._model: CrossEncoder | None = None
        self._loading = threading.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="reranker")

    @property
    def name(self) -> str:
        """The folder's name and a fingerprint of its weights."""
        return self._name

    def load(self) -> None:
        """Load the model.

        Raises:
            ConfigurationError: sentence-transformers is not installed, or the folder is no cross-encoder's.
        """
        with self._loading:
            if self._model is None:
                self._model = CrossEncoder(self._folder, "ENGRAM_RERANKER_FOLDER")

    def score(self, question: str, texts: Sequence[str], seconds: float) -> list[float]:
        """Relevance of each text, in [0, 1].

        Raises:
            RerankerError: it takes longer.
        """
        work = self._pool.submit(self._score_texts, question, list(texts))
        try:
            return work.result(timeout=seconds)
        except FutureTimeoutError as error:
            work.cancel()
            raise RerankerError(f"The reranker {self._folder.name} did not answer in time.") from error

    def close(self) -> None:
        """End its thread."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _score_texts(self, question: str, texts: list[str]) -> list[float]:
        self.load()
        assert self._model is not None  # noqa: S101 - just loaded
        return self._model.score(question, texts)
