"""Prefixes that models expect before questions and passages, and the dimension that their vectors are cut to."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engram.context.errors import ConfigurationError
from engram.providers.embedder.encoder_protocol import Embedder, choose_question_embed, choose_token_test
from engram.providers.embedder.model_folder import PACKAGED_MODELS
from engram.providers.embedder.question_tuning import QuestionTuning, find_question_tuning

MOST_DIMENSION = 4096
"""Longest vectors that a collection can hold."""

_RETRIEVAL = "Represent this sentence for searching relevant passages: "
_WEB_SEARCH = "Given a web search query, retrieve relevant passages that answer the query"
_KNOWN_PREFIXES = (
    # Each after those whose names contain its own.
    ("e5-mistral", f"Instruct: {_WEB_SEARCH}\nQuery: ", ""),
    ("e5-large-instruct", f"Instruct: {_WEB_SEARCH}\nQuery: ", ""),
    ("e5-", "query: ", "passage: "),
    ("bge-m3", "", ""),
    ("bge-small-en", _RETRIEVAL, ""),
    ("bge-base-en", _RETRIEVAL, ""),
    ("bge-large-en", _RETRIEVAL, ""),
    ("nomic-embed-text", "search_query: ", "search_document: "),
    ("modernbert-embed", "search_query: ", "search_document: "),
    ("mxbai-embed-large", _RETRIEVAL, ""),
    ("arctic-embed-l-v2", "query: ", ""),
    ("arctic-embed-m-v2", "query: ", ""),
    ("arctic-embed2", "query: ", ""),
    ("arctic-embed", _RETRIEVAL, ""),
    ("qwen3-embedding", f"Instruct: {_WEB_SEARCH}\nQuery:", ""),
    ("embeddinggemma", "task: search result | query: ", "title: none | text: "),
)
"""Part of a model's name in lower case, its prefix of questions, and that of passages, by its publisher."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Text that is put before every question and every passage."""

    question: str = ""
    passage: str = ""


NO_PREFIXES = Prefixes()


def find_known_prefixes(model: str) -> Prefixes:
    """The prefixes that the publisher of a model states, by its name; none for an unknown one."""
    name = model.lower().replace("_", "-")
    for part, question, passage in _KNOWN_PREFIXES:
        if part in name:
            return Prefixes(question, passage)
    return NO_PREFIXES


def unit_length(vectors: NDArray[np.float32], dimension: int | None) -> NDArray[np.float32]:
    """The first ``dimension`` numbers of vectors (n, d), or all, at length 1.

    Raises:
        ValueError: a vector is not finite, or nothing of it is left.
    """
    cut = vectors if dimension is None else vectors[:, :dimension]
    norms = np.linalg.norm(cut.astype(np.float64), axis=1, keepdims=True)
    if not np.isfinite(norms).all():
        raise ValueError("a vector has numbers that are not finite")
    if not norms.all():
        raise ValueError("a vector has length 0")
    return np.ascontiguousarray(cut / norms, dtype=np.float32)


def find_packaged_prefixes(model: str) -> Prefixes:
    """The prefixes of a model that Engram knows by name; none for a folder, which may hold any model."""
    return find_known_prefixes(model) if model in PACKAGED_MODELS else NO_PREFIXES


class PrefixedEmbedder:
    """An encoder of this machine with prefixes before its texts, and shorter vectors."""

    def __init__(
        self, embedder: Embedder, prefixes: Prefixes, dimension: int | None, name: str | None = None
    ) -> None:
        """Wrap an encoder.

        Args:
            dimension: numbers that are kept of each vector, which takes a model trained for that (Matryoshka);
                None: all.
            name: recorded with collections; None: the encoder's own.

        Raises:
            ConfigurationError: the encoder's vectors are shorter.
        """
        if dimension is not None and dimension > embedder.dimension:
            raise ConfigurationError(
                f"{embedder.model} gives {embedder.dimension}-dimensional vectors, but "
                f"ENGRAM_EMBEDDING_DIMENSION is {dimension}."
            )
        self._embedder = embedder
        self._prefixes = prefixes
        self._cut = dimension if dimension != embedder.dimension else None
        self.model = name or embedder.model
        self.dimension = dimension or embedder.dimension
        recipe = f"{embedder.fingerprint}\n{self.dimension}\n{prefixes.question}\n{prefixes.passage}"
        as_it_is = prefixes == NO_PREFIXES and self._cut is None
        self.fingerprint = embedder.fingerprint if as_it_is else hashlib.sha256(recipe.encode()).hexdigest()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit-length vectors of passages, shape (n, d), in the order of ``texts``."""
        return self._shorten(self._embedder.embed([self._prefixes.passage + text for text in texts]))

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit-length vectors of questions, shape (n, d), in the order of ``texts``."""
        embed = choose_question_embed(self._embedder)
        return self._shorten(embed([self._prefixes.question + text for text in texts]))

    @property
    def question_tuning(self) -> QuestionTuning | None:
        """The encoder's, with the prefix of questions and shorter vectors; None if it has none."""
        tuning = find_question_tuning(self._embedder)
        if tuning is None:
            return None
        return replace(tuning, prefix=self._prefixes.question + tuning.prefix, dimension=self._cut)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without those of prefixes."""
        return self._embedder.count_tokens(texts)

    @property
    def is_one_token(self) -> Callable[[str], bool]:
        """Tells whether a word is one token."""
        return choose_token_test(self._embedder)

    def _shorten(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        return vectors if self._cut is None else unit_length(vectors, self._cut)
