"""One model in two precisions: the quick one for passages, the exact one for questions."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engram.providers.embedder.late_embedder import LateEmbedder
from engram.providers.embedder.prefixes import PrefixedEmbedder, Prefixes
from engram.providers.embedder.two_precisions import TwoPrecisionEmbedder


class Constant:
    """Gives each text the same vector, and keeps the texts."""

    def __init__(self, axis: int) -> None:
        self.model, self.fingerprint, self.dimension = "constant", str(axis) * 64, 3
        self.texts: list[str] = []
        self._axis = axis

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += texts
        return np.tile(np.eye(3, dtype=np.float32)[self._axis], (len(texts), 1))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]


def test_each_precision_embeds_its_kind_of_text() -> None:
    quick, exact = Constant(0), Constant(1)
    embedder = TwoPrecisionEmbedder(quick, exact)
    assert embedder.embed(["a"]).tolist() == [[1, 0, 0]]
    assert embedder.embed_questions(["b"]).tolist() == [[0, 1, 0]]
    assert (quick.texts, exact.texts) == (["a"], ["b"])
    assert embedder.fingerprint == quick.fingerprint


def test_questions_are_embedded_without_loading_the_quick_precision() -> None:
    loads: list[int] = []

    def load() -> Constant:
        loads.append(1)
        return Constant(0)

    embedder = TwoPrecisionEmbedder(LateEmbedder("constant", "0" * 64, 3, load), Constant(1))
    embedder.embed_questions(["b"])
    embedder.count_tokens(["b"])
    embedder.embed([])
    assert loads == []


def test_prefixes_stand_before_the_texts_of_both() -> None:
    quick, exact = Constant(0), Constant(1)
    embedder = PrefixedEmbedder(TwoPrecisionEmbedder(quick, exact), Prefixes("query: ", "passage: "), 2)
    assert embedder.embed_questions(["b"]).tolist() == [[0, 1]]
    assert embedder.embed(["a"]).tolist() == [[1, 0]]
    assert (quick.texts, exact.texts) == (["passage: a"], ["query: b"])
