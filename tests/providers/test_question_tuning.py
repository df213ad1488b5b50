"""Questions with an adapter: served as they are learned, and as before without one."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from engram.providers.embedder import Embedder, load_embedder
from engram.providers.embedder.bert_graph import list_adapted_maps
from engram.providers.embedder.encoder_protocol import choose_question_embed
from engram.providers.embedder.model_folder import DEFAULT_MODEL, MULTILINGUAL_MODEL
from engram.providers.embedder.prefixes import PrefixedEmbedder, Prefixes
from engram.providers.embedder.question_tuning import (
    EncoderNotTunableError,
    QuestionTuning,
    choose_question_tuning,
)

TEXTS = ["How do I reset my card?", "capital of France", "What is it that a long question asks about " * 9]


def make_arrays(tuning: QuestionTuning, scale: float = 0.05) -> dict:
    random = np.random.default_rng(0)
    weights = tuning.read_weights(tuning.tokenise(TEXTS, 64)).arrays
    arrays = {}
    for name in sorted(list_adapted_maps(tuning.shape, tuning.adapted_layers)):
        outputs, inputs = weights[f"{name}.weight"].shape
        arrays[f"{name}.down"] = (random.normal(size=(inputs, 4)) / np.sqrt(inputs)).astype(np.float16)
        arrays[f"{name}.up"] = (scale * random.normal(size=(4, outputs))).astype(np.float16)
    return arrays


def load(tmp_path: Path, model: str = DEFAULT_MODEL, precision: str = "float32") -> Embedder:
    return load_embedder(model, "onnx", tmp_path, 1, 8, precision)


@pytest.mark.parametrize("precision", ["float32", "int8", "dynamic-int8"])
def test_an_adapter_is_a_change_of_the_weights(precision: str, tmp_path: Path) -> None:
    embedder = load(tmp_path, precision=precision)
    tuning = choose_question_tuning(embedder)
    base = choose_question_embed(embedder)(TEXTS)
    assert np.array_equal(tuning.embed(TEXTS, None), base)
    zero = {name: array * 0 for name, array in make_arrays(tuning).items()}
    assert np.abs(tuning.embed(TEXTS, tuning.load_adapter(zero)) - base).max() < 1e-5
    tuned = tuning.embed(TEXTS, tuning.load_adapter(make_arrays(tuning)))
    cosines = (tuned * base).sum(axis=1)
    assert cosines.max() < 0.999
    assert cosines.min() > 0.8
    assert np.array_equal(tuning.embed(TEXTS, None), base)


def test_prefixes_and_shorter_vectors(tmp_path: Path) -> None:
    plain = load(tmp_path)
    tuning = choose_question_tuning(plain)
    prefixed = choose_question_tuning(PrefixedEmbedder(plain, Prefixes("query: ", "passage: "), 100))
    adapter = tuning.load_adapter(make_arrays(tuning))
    cut = tuning.embed([f"query: {text}" for text in TEXTS], adapter)[:, :100]
    expected = cut / np.linalg.norm(cut, axis=1, keepdims=True)
    assert np.abs(prefixed.embed(TEXTS, adapter) - expected).max() < 1e-6
    rows = prefixed.tokenise(TEXTS, 20)
    assert [row.tolist() for row in rows] == [
        row.tolist() for row in tuning.tokenise([f"query: {text}" for text in TEXTS], 20)
    ]
    assert [len(row) for row in rows][2] == 20
    assert (prefixed.read_weights(rows).dimension, tuning.read_weights(rows).dimension) == (100, None)


def test_weights_have_the_words_of_the_questions_alone(tmp_path: Path) -> None:
    tuning = choose_question_tuning(load(tmp_path, MULTILINGUAL_MODEL))
    weights = tuning.read_weights(tuning.tokenise(TEXTS, 64))
    assert len(weights.vocabulary) < 60
    assert weights.arrays["embeddings.word_embeddings.weight"].shape == (len(weights.vocabulary), 384)
    assert all(array.dtype == np.float32 for array in weights.arrays.values())


class Server:
    """An encoder behind an endpoint, as far as tuning looks."""

    model, fingerprint, dimension = "served", "0" * 64, 3

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        return np.ones((len(texts), 3), dtype=np.float32)


def test_an_encoder_without_weights_here_is_refused() -> None:
    with pytest.raises(EncoderNotTunableError, match=r"served cannot be tuned: .* keeps its weights"):
        choose_question_tuning(Server())
    prefixed = PrefixedEmbedder(Server(), Prefixes("q: ", ""), None)
    with pytest.raises(EncoderNotTunableError):
        choose_question_tuning(prefixed)
