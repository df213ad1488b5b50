"""Interface of encoders."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


class Embedder(Protocol):
    """A sentence encoder; safe to call from several threads at once."""

    @property
    def model(self) -> str:
        """Name recorded with collections, such as ``all-MiniLM-L6-v2``."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the weights (hex), or of weights and recipe: equal for comparable vectors only."""

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


def choose_token_test(embedder: Embedder) -> Callable[[str], bool]:
    """The encoder's ``is_one_token``, which tells whether a word is one token, or a count of its tokens."""
    test: Callable[[str], bool] = getattr(
        embedder, "is_one_token", lambda word: embedder.count_tokens([word]) == [1]
    )
    return test


def choose_question_embed(embedder: Embedder) -> Embed:
    """The encoder's ``embed_questions``, or ``embed`` where it has none and embeds all texts alike."""
    embed: Embed = getattr(embedder, "embed_questions", embedder.embed)
    return embed
