"""The encoder that this process runs, lent for the collections whose vectors it made, and for no others."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.errors import EmbeddingSpaceMismatchError
from app.providers.embedder import Embedder
from app.storage.corpus.collections import Collection, EncoderId

FINGERPRINT_CHARACTERS = 12
"""Shown of a fingerprint."""


class Encoder:
    """Embeds text that is to stand beside a collection's vectors.

    Services have no other way to the encoder, so none compares vectors that mean nothing beside each other. What
    embeds nothing asks nobody: a collection of another encoder can be read, unlearned and deleted all the same.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def id(self) -> EncoderId:
        """Which one it is."""
        return EncoderId(self._embedder.model, self._embedder.fingerprint)

    def check(self, collection: Collection) -> None:
        """See that the collection's vectors are of this encoder, before anything is done that will embed.

        Raises:
            EmbeddingSpaceMismatchError: they are of another one.
        """
        held, run = collection.encoder, self.id
        if held.fingerprint != run.fingerprint:
            raise EmbeddingSpaceMismatchError(
                f"Collection {collection.name!r} holds vectors of {_named(held)}, but this process runs "
                f"{_named(run)}. Run the first for it (ENGRAM_EMBEDDING_MODEL), or ingest its passages into a new "
                "collection."
            )

    def embed(self, collection: Collection, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit-length vectors of the texts, shape (n, d), comparable with the collection's.

        Raises:
            EmbeddingSpaceMismatchError: the collection's are of another encoder.
        """
        self.check(collection)
        return self._embedder.embed(texts)


def _named(encoder: EncoderId) -> str:
    return f"{encoder.model} ({encoder.fingerprint[:FINGERPRINT_CHARACTERS]})"
