"""The encoders that this process runs, lent for the collections whose vectors they made, and for no others."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engram.context.errors import EmbeddingSpaceMismatchError, InvalidRequestError
from engram.providers.embedder import Embedder
from engram.storage.corpus.collections import Collection, EncoderId

QUESTION_TOKENS = 512
"""Tokens of a question, where nothing else is configured."""
EXPANSION_SHARE = 4
"""All expansions of a question together may have so many times the tokens of a question."""
FINGERPRINT_CHARACTERS = 12
"""Shown of a fingerprint."""


class Encoder:
    """Embeds text that is to stand beside a collection's vectors.

    Services have no other way to the encoders, so none compares vectors that mean nothing beside each other. What
    embeds nothing asks nobody: a collection of another encoder can be read, unlearned and deleted all the same.
    """

    def __init__(self, embedder: Embedder, *others: Embedder, question_tokens: int = QUESTION_TOKENS) -> None:
        """``embedder`` makes the vectors of new collections; those of ``others`` are served by these.

        Args:
            question_tokens: most tokens of a question.
        """
        self._embedder = embedder
        self._question_tokens = question_tokens
        self._all = {one.fingerprint: one for one in (*others, embedder)}

    @property
    def id(self) -> EncoderId:
        """Identity of the encoder that new collections get."""
        return _id(self._embedder)

    @property
    def fingerprints(self) -> list[str]:
        """Fingerprints of all encoders."""
        return list(self._all)

    def check(self, collection: Collection) -> None:
        """See that the collection's vectors are of an encoder of this process, before anything is done that embeds.

        Raises:
            EmbeddingSpaceMismatchError: they are of another one.
        """
        self._embedder_of(
            collection.encoder, f"Collection {collection.name!r} holds vectors of {_named(collection.encoder)}"
        )

    def check_question(self, question: str, expansions: Sequence[str] = ()) -> None:
        """Refuse a question, or expansions of one, that would take the encoder for too long.

        Raises:
            InvalidRequestError: it has more tokens than ``ENGRAM_QUESTION_TOKENS``, or they have together more than
                four times as many.
        """
        self._check_tokens("The question", [question], self._question_tokens, "ENGRAM_QUESTION_TOKENS")
        self._check_tokens(
            "The question's expansions",
            expansions,
            EXPANSION_SHARE * self._question_tokens,
            f"{EXPANSION_SHARE} times ENGRAM_QUESTION_TOKENS",
        )

    def _check_tokens(self, what: str, texts: Sequence[str], most: int, bound: str) -> None:
        if sum(map(len, texts)) <= most:  # a token has at least one character
            return
        tokens = sum(self._embedder.count_tokens(texts))
        if tokens > most:
            verb = "has" if len(texts) == 1 else "have together"
            raise InvalidRequestError(
                f"{what} {verb} {tokens} tokens or more; the limit is {most} ({bound}).", limit=most, tokens=tokens
            )

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text that the encoder of new collections would read."""
        return self._embedder.count_tokens(texts)

    def embed(self, collection: Collection, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit-length vectors of the texts, shape (n, d), comparable with the collection's.

        Raises:
            EmbeddingSpaceMismatchError: the collection's are of another encoder.
        """
        self.check(collection)
        return self._all[collection.encoder_fingerprint].embed(texts)

    def embed_anew(self, encoder: EncoderId, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit-length vectors of the texts, shape (n, d), by an encoder that a collection shall be of.

        Raises:
            EmbeddingSpaceMismatchError: this process does not run it.
        """
        return self._embedder_of(encoder, f"Vectors of {_named(encoder)} are wanted").embed(texts)

    def another(self, collection: Collection, model: str | None = None) -> EncoderId:
        """The encoder called ``model``; None: that of this process that the collection is not of.

        Raises:
            InvalidRequestError: this process runs no such one, or several.
        """
        named = [one for one in self._all.values() if model in {None, one.model}]
        candidates = [one for one in named if model or one.fingerprint != collection.encoder_fingerprint]
        if len(candidates) == 1:
            return _id(candidates[0])
        raise InvalidRequestError(
            f"This process runs {self._running()}; name one of them to make the vectors of {collection.name!r} by, "
            "or have it run another beside (ENGRAM_SECONDARY_EMBEDDING_MODEL)."
        )

    def _embedder_of(self, encoder: EncoderId, purpose: str) -> Embedder:
        embedder = self._all.get(encoder.fingerprint)
        if embedder is None:
            raise EmbeddingSpaceMismatchError(
                f"{purpose}, but this process runs {self._running()}. "
                "Run the first for it (ENGRAM_EMBEDDING_MODEL, "
                "ENGRAM_SECONDARY_EMBEDDING_MODEL), or ingest its passages into a new collection."
            )
        return embedder

    def _running(self) -> str:
        return " and ".join(_named(_id(one)) for one in reversed(self._all.values()))


def _id(embedder: Embedder) -> EncoderId:
    return EncoderId(embedder.model, embedder.fingerprint)


def _named(encoder: EncoderId) -> str:
    return f"{encoder.model} ({encoder.fingerprint[:FINGERPRINT_CHARACTERS]})"
