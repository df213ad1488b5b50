"""Measure the ranges of the packaged encoders' activations over the sample collection, and write the packaged file.

    python benchmarks/activation_ranges.py [--check]

With --check nothing is written; the exit status is 1 if the file differs from what is measured.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

import engram
from engram.providers.embedder.activation_ranges import FILE
from engram.providers.embedder.bert_graph import BertGraph
from engram.providers.embedder.model_folder import DEFAULT_MODEL, MULTILINGUAL_MODEL, ModelFolder, open_model
from engram.providers.embedder.onnx_encoder import read_writable_shape
from engram.providers.embedder.token_windows import WindowedEmbedder

DIGITS = 3
"""Significant digits that the file keeps."""


class TappedGraph(BertGraph):
    """The graph in single precision that also gives out what each layer's two parts read."""

    def encode(self, pooling: str) -> None:
        """Add all steps, and remember the results to give out."""
        self.inputs: list[str] = []
        super().encode(pooling)

    def layer(self, name: str, tokens: str, bias: str) -> str:
        """Remember the input of attention and, by its norm, that of the feed-forward network."""
        result = super().layer(name, tokens, bias)
        norms = [node.outputs[0] for node in self.nodes if node.operator == "LayerNormalization"]
        self.inputs += [tokens, norms[-2]]
        return result


def sample_texts() -> list[str]:
    """Titles and texts of the sample collection."""
    lines = files("engram.wings.local.sample").joinpath("corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return [f"{passage['title']}. {passage['text']}" for passage in map(json.loads, lines)]


def measure(folder: ModelFolder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Largest absolute values of all channels over the tokens of ``texts``, (layers, 2, d)."""
    shape = read_writable_shape(folder)
    if shape is None or folder.weights is None:
        raise SystemExit(f"The graph of {folder.model} cannot be written without torch.")
    graph = TappedGraph(shape, folder.weights.read())
    graph.encode(folder.pooling[0])
    options = onnxruntime.SessionOptions()
    options.add_external_initializers(
        list(graph.initializers), list(map(onnxruntime.OrtValue.ortvalue_from_numpy, graph.initializers.values()))
    )
    written = graph.serialize(dict.fromkeys(graph.inputs, shape.width))
    session = onnxruntime.InferenceSession(written, options, providers=["CPUExecutionProvider"])
    ranges = np.zeros((len(graph.inputs), shape.width), dtype=np.float32)

    def encode(token_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> NDArray[np.float32]:
        inputs = {"input_ids": token_ids, "attention_mask": attention_mask}
        vectors, *activations = session.run(["embedding", *graph.inputs], inputs)
        for row, values in zip(ranges, activations, strict=True):
            np.maximum(row, np.abs(values[attention_mask == 1]).max(axis=0), out=row)
        embedded: NDArray[np.float32] = vectors
        return embedded

    embedder = WindowedEmbedder(folder, encode, batch_size=32)
    ranges[:] = 0  # the embedder tried itself with a text of its own
    embedder.embed(texts)
    return ranges.reshape(shape.layers, 2, shape.width)


def measure_model(model: str) -> tuple[str, dict[str, list[list[float]]]]:
    """SHA-256 of a packaged encoder's weights, and its ranges as the file keeps them."""
    folder = open_model(model)
    rounded = [
        [[float(f"{value:.{DIGITS}g}") for value in part] for part in layer]
        for layer in measure(folder, sample_texts())
    ]
    return folder.fingerprint, {
        "attention": [attention for attention, _ in rounded],
        "feed_forward": [feed_forward for _, feed_forward in rounded],
    }


def main() -> None:
    """Write the file, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="Compare the file and write nothing.")
    arguments = parser.parse_args()
    content = dict(map(measure_model, (DEFAULT_MODEL, MULTILINGUAL_MODEL)))
    text = json.dumps(content, separators=(",", ":")).replace("]", "]\n") + "\n"
    target = Path(engram.__file__).parent / FILE
    if arguments.check:
        sys.exit(int(target.read_text(encoding="utf-8") != text))
    target.write_text(text, encoding="utf-8")
    print(f"{target}: {len(text)} bytes")


if __name__ == "__main__":
    main()
