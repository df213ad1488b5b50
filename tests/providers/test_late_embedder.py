"""An encoder that is loaded on first use."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from engram.context.errors import ConfigurationError
from engram.providers.embedder.late_embedder import LateEmbedder


class Ones:
    model, fingerprint, dimension = "ones", "1" * 64, 3

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), 3), dtype=np.float32)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]


def test_encoder_is_loaded_once_by_the_first_text() -> None:
    loads: list[int] = []

    def load() -> Ones:
        loads.append(1)
        return Ones()

    late = LateEmbedder("ones", "1" * 64, 3, load)
    assert late.embed([]).shape == (0, 3)
    assert loads == []
    with ThreadPoolExecutor(8) as threads:
        vectors = list(threads.map(lambda _: late.embed(["a"]), range(8)))
    assert [vector.tolist() for vector in vectors] == [[[1, 1, 1]]] * 8
    assert late.count_tokens(["abc"]) == [3]
    assert loads == [1]


def test_a_load_that_fails_is_tried_again() -> None:
    outcomes: list[Ones | None] = [Ones(), None]

    def load() -> Ones:
        loaded = outcomes.pop()
        if loaded is None:
            raise ConfigurationError("The weights are missing.")
        return loaded

    late = LateEmbedder("ones", "1" * 64, 3, load)
    with pytest.raises(ConfigurationError, match="missing"):
        late.embed(["a"])
    assert late.embed(["a"]).shape == (1, 3)
