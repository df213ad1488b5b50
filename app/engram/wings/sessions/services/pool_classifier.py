"""Classify whether a session's evidence pool suffices (R-Feedback, ``wings.sessions.core.feedback_stop``)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engram.context.errors import ConfigurationError
from engram.providers.language import Language
from engram.services.encoders.encoder import Encoder
from engram.storage.corpus.collections import Collection
from engram.wings.sessions.core.feedback_stop import PoolClassification, classify_pool, compute_named_share
from engram.wings.sessions.services.stop_weights import COSINE, Relevance, StopWeights


class PoolClassifier:
    """Tells pools that suffice from those that do not."""

    def __init__(
        self, language: Language, encoder: Encoder, relevance: Relevance | None, weights: StopWeights
    ) -> None:
        """Go by these weights.

        Args:
            relevance: the cross-encoder, or None for the cosine of embeddings.

        Raises:
            ConfigurationError: the weights were fitted by another second feature.
        """
        by = COSINE if relevance is None else relevance.name
        if weights.relevance != by:
            raise ConfigurationError(
                f"The weights of the stop were fitted by {weights.relevance!r}, and relevance is told by {by!r}: "
                "fit others with `engram fit-stop` and name them in ENGRAM_SESSIONS_STOP_WEIGHTS."
            )
        self._language = language
        self._encoder = encoder
        self._relevance = relevance
        self._weights = weights.classifier

    @property
    def reads(self) -> bool:
        """Whether a cross-encoder reads the pool; without one, cosines of stored vectors tell relevance."""
        return self._relevance is not None

    def classify(
        self, collection: Collection, question: str, pool: Sequence[str], cosine: float | None = None
    ) -> PoolClassification:
        """Classify a pool; an empty one has relevance 0.

        Args:
            cosine: highest cosine of a pool sentence with the question, if the caller already knows it. It replaces
                the cross-encoder's score too: give none where ``reads`` is true.
        """
        names = self._language.analyse_question(question).entities
        relevance = self._compute_relevance(collection, question, pool) if cosine is None else cosine
        return classify_pool(compute_named_share(names, pool), relevance, self._weights)

    def embed_question(self, collection: Collection, question: str) -> NDArray[np.float32]:
        """The question's vector, (d,), which a pool's cosines are with."""
        vector: NDArray[np.float32] = self._encoder.embed_questions(collection, [question])[0]
        return vector

    def _compute_relevance(self, collection: Collection, question: str, pool: Sequence[str]) -> float:
        """Return the relevance of the most relevant sentence; the paper does not say how to combine several.

        Over pools of 86 development questions of MuSiQue the most tells them apart with an AUC of .72, the mean of
        the three best with .62, that of all with .50.
        """
        if not pool:
            return 0.0
        if self._relevance is not None:
            scores = self._relevance.score(question, pool)
        else:
            vectors, texts = self._encoder.embed_both(collection, [question], pool)
            scores = (texts @ vectors[0]).tolist()
        return float(max(scores))
