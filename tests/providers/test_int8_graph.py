"""The encoder in eight bits: its graph, its vectors, and the ranges that smooth its activations."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from benchmarks.activation_ranges import measure
from engram.context.errors import ConfigurationError
from engram.providers.embedder import Embedder, bert_graph, int8_graph, load_embedder, load_precisions
from engram.providers.embedder.activation_ranges import ActivationRanges, find_ranges
from engram.providers.embedder.model_folder import DEFAULT_MODEL, DEFAULT_MODEL_SHA256, ModelFolder, open_model
from engram.providers.embedder.onnx_encoder import read_writable_shape
from tests.providers.test_bert import alter_folder

TEXTS = (
    "Where was the director of the film born?",
    "a",
    "Hydrogen is the lightest element. " * 40,
    "Überraschung! 東京は日本の首都です。 Москва — столица России.",
    "def encode(self, text: str) -> bytes:\n    return text.encode()",
    "???? .... 1 2 3 4 5 6 7 8 9 10 11 12",
)


@pytest.fixture(scope="module")
def folder() -> ModelFolder:
    return open_model(DEFAULT_MODEL)


@pytest.fixture(scope="module")
def weights(folder: ModelFolder) -> dict[str, NDArray[np.float32]]:
    loaded: dict[str, NDArray[np.float32]] = load_file(folder.transformer / "model.safetensors")
    return loaded


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    return load_embedder(DEFAULT_MODEL, "onnx", tmp_path_factory.mktemp("data"), threads=1, batch_size=8)


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    data = tmp_path_factory.mktemp("data")
    return load_embedder(DEFAULT_MODEL, "onnx", data, threads=1, batch_size=8, precision="dynamic-int8")


def shape_of(folder: ModelFolder) -> bert_graph.Shape:
    shape = read_writable_shape(folder)
    assert shape is not None
    return shape


class TestVectors:
    def test_they_are_nearly_those_of_single_precision(self, single: Embedder, eight: Embedder) -> None:
        cosines = (single.embed(TEXTS) * eight.embed(TEXTS)).sum(axis=1)
        assert cosines.min() > 0.997
        assert cosines.max() < 0.99999  # and not the same graph again

    def test_they_do_not_depend_on_the_texts_beside_them(self, eight: Embedder) -> None:
        alone = np.vstack([eight.embed([text]) for text in TEXTS])
        np.testing.assert_allclose(eight.embed(TEXTS), alone, atol=1e-6)

    def test_an_empty_text_has_one(self, eight: Embedder) -> None:
        np.testing.assert_allclose(np.linalg.norm(eight.embed(["", " "]), axis=1), 1, atol=1e-6)

    def test_unsigned_weights_give_the_same(
        self, eight: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("engram.providers.embedder.onnx_encoder.has_dot_products", lambda: False)
        unsigned = load_embedder(DEFAULT_MODEL, "onnx", tmp_path, threads=1, batch_size=8, precision="dynamic-int8")
        vectors = unsigned.embed(TEXTS[:1])  # now: the graph is written for the first text
        monkeypatch.setattr("engram.providers.embedder.onnx_encoder.has_dot_products", lambda: True)
        signed = load_embedder(DEFAULT_MODEL, "onnx", tmp_path, threads=1, batch_size=8, precision="dynamic-int8")
        assert unsigned.fingerprint == signed.fingerprint == eight.fingerprint
        np.testing.assert_allclose(vectors, eight.embed(TEXTS[:1]), atol=1e-5)


class TestPrecisions:
    def test_vectors_of_each_precision_are_served(self, single: Embedder, eight: Embedder, tmp_path: Path) -> None:
        for precision, other in (("float32", eight), ("int8", eight), ("dynamic-int8", single)):
            first, later = load_precisions(DEFAULT_MODEL, "onnx", tmp_path, 1, 8, precision)  # type: ignore[arg-type]
            assert (later.model, later.fingerprint, later.dimension) == (DEFAULT_MODEL, other.fingerprint, 384)
            assert first.fingerprint != later.fingerprint
            np.testing.assert_allclose(later.embed(TEXTS[:1]), other.embed(TEXTS[:1]), atol=1e-6)

    @pytest.mark.parametrize(("quick", "precision"), [(True, "dynamic-int8"), (False, "float32")])
    def test_auto_takes_what_suits_the_processor(
        self,
        quick: bool,
        precision: str,
        single: Embedder,
        eight: Embedder,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        monkeypatch.setattr("engram.providers.embedder.encoder_loading.has_dot_products", lambda: quick)
        chosen = load_embedder(DEFAULT_MODEL, "onnx", tmp_path, 1, 8, "auto")
        assert chosen.fingerprint == (eight if precision == "dynamic-int8" else single).fingerprint

    def test_the_fingerprint_is_that_of_the_recipe(self, single: Embedder, eight: Embedder) -> None:
        assert single.fingerprint == DEFAULT_MODEL_SHA256
        assert eight.fingerprint != DEFAULT_MODEL_SHA256
        assert len(eight.fingerprint) == 64

    def test_a_model_without_ranges_has_none(self, tmp_path: Path) -> None:
        other = alter_folder(tmp_path, {})
        weights = load_file(other / "model.safetensors")
        weights["encoder.layer.0.output.dense.bias"][0] += 1
        save_file(weights, other / "model.safetensors")
        with pytest.raises(ConfigurationError, match="set it to 'auto', 'int8' or 'float32'"):
            load_embedder(str(other), "onnx", tmp_path, 1, 8, "dynamic-int8")
        assert len(load_precisions(str(other), "onnx", tmp_path, 1, 8, "auto")) == 1

    def test_torch_has_none(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="Eight bits are for the embedding runtime 'onnx'"):
            load_embedder(DEFAULT_MODEL, "torch", tmp_path, 1, 8, "dynamic-int8")


class TestGraph:
    def test_ranges_of_another_size_are_refused(
        self, folder: ModelFolder, weights: dict[str, NDArray[np.float32]]
    ) -> None:
        ranges = ActivationRanges(np.ones((5, 384), np.float32), np.ones((5, 384), np.float32))
        with pytest.raises(ValueError, match="not of 6 layers and 384 channels"):
            int8_graph.write(shape_of(folder), weights, "mean", ranges, signed_weights=True)

    def test_onnx_can_read_it(self, folder: ModelFolder, weights: dict[str, NDArray[np.float32]]) -> None:
        ranges = find_ranges(folder.fingerprint)
        assert ranges is not None
        written, given = int8_graph.write(shape_of(folder), weights, "cls", ranges, signed_weights=True)
        graph = onnx.load_model_from_string(written).graph
        kinds = {tensor.name: tensor.data_type for tensor in graph.initializer}
        numbers = [name for name in given if name.endswith(".numbers")]
        assert len(numbers) == 36
        assert {kinds[name] for name in numbers} == {onnx.TensorProto.INT8}
        produced = {name for node in graph.node for name in node.output}
        assert {name for node in graph.node for name in node.input if name} <= produced | {
            *kinds,
            "input_ids",
            "attention_mask",
        }


class TestRanges:
    def test_those_of_the_package_cover_texts_of_the_sample(self, folder: ModelFolder) -> None:
        texts = [
            "Voyager 1. Voyager 1 is a space probe that NASA launched from Cape Canaveral on 5 September 1977."
        ]
        measured = measure(folder, texts)
        known = find_ranges(folder.fingerprint)
        assert known is not None
        packaged = np.stack([known.attention, known.feed_forward], axis=1)
        assert packaged.shape == measured.shape == (6, 2, 384)
        # A sentence of a passage has other neighbours than in the passage, so single channels may pass the range.
        assert np.median(measured / packaged) < 1
        assert (measured < 3 * packaged).all()
        assert packaged.max() > 8 * np.median(packaged)  # outliers, the reason for smoothing

    def test_no_other_weights_have_them(self) -> None:
        assert find_ranges("0" * 64) is None
