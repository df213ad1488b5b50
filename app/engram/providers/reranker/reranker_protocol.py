"""A reranker as the rest of Engram sees it."""

from collections.abc import Sequence
from typing import Protocol


class RerankerError(Exception):
    """The reranker gave no usable scores in time; the message says why, in one line."""


class Reranker(Protocol):
    """A cross-encoder; safe to call from several threads at once."""

    @property
    def name(self) -> str:
        """Name of the model, by which beliefs about it are kept apart."""

    def score(self, question: str, texts: Sequence[str], seconds: float) -> list[float]:
        """One score for each text: relevances in [0, 1], or log odds.

        Args:
            seconds: it takes no longer.

        Raises:
            RerankerError: there are none in time.
        """
