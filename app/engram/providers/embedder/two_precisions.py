"""An encoder that embeds passages quickly and questions exactly."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from engram.providers.embedder.encoder_protocol import Embedder, choose_token_test
from engram.providers.embedder.question_tuning import QuestionTuning, find_question_tuning


class TwoPrecisionEmbedder:
    """One model in two precisions, whose vectors are close enough to be compared with each other.

    Ingest embeds thousands of texts, so passages, sentences and names are made in the quick precision. A query
    embeds one text, so questions are made in the exact one: only one side of a cosine is then rounded.
    """

    def __init__(self, passages: Embedder, questions: Embedder) -> None:
        """Join the two.

        Args:
            passages: gives the name, the fingerprint and the dimension as well.
            questions: the same model, in the exact precision.
        """
        self._passages = passages
        self._questions = questions
        self.model = passages.model
        self.fingerprint = passages.fingerprint
        self.dimension = passages.dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit-length vectors of passages, shape (n, d), in the order of ``texts``."""
        return self._passages.embed(texts)

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit-length vectors of questions, shape (n, d), in the order of ``texts``."""
        return self._questions.embed(texts)

    @property
    def question_tuning(self) -> QuestionTuning | None:
        """Tuning of the exact precision, which embeds questions."""
        return find_question_tuning(self._questions)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, which are the same in both precisions."""
        return self._questions.count_tokens(texts)

    @property
    def is_one_token(self) -> Callable[[str], bool]:
        """Tells whether a word is one token."""
        return choose_token_test(self._questions)
