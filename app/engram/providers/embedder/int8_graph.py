"""BERT's encoder with dense layers in eight bits, as an ONNX graph: weights by output, activations by token.

Every row of activations, which is a token, is rounded with a scale of its own. So a text's vector does not depend
on the texts that are encoded with it. The operator MatMulIntegerToFloat multiplies whole numbers exactly.

Three changes of the published graph cost nothing and leave its result as it is:
- The normalisation before a layer smooths its activations (see ``row_quantisation``). A second normalisation,
  without smoothing, gives what is added to the layer's result. It adds the layer's bias as well.
- The bias of keys is left out: it moves all scores of a query alike.
- The bias of values becomes part of the next layer's, since shares of attention sum to 1.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from engram.providers.embedder.activation_ranges import ActivationRanges
from engram.providers.embedder.bert_graph import EMBEDDINGS, BertGraph, Shape
from engram.providers.embedder.onnx_messages import OnnxNode
from engram.providers.embedder.row_quantisation import compute_smoothing_factors, quantise_weights
from engram.providers.embedder.weight_files import WeightArray

Vector = NDArray[np.float32]

VERSION = 1
"""Raise when the graph computes other vectors: collections of earlier ones then need to be embedded anew."""
ZERO = 128
"""Number that stands for 0 where activations have both signs."""
GELU_ZERO = 20
"""Number that stands for 0 in results of GELU, of which few are negative and none is below ``-GELU_DEPTH``."""
GELU_DEPTH = 0.17
_MOST_UINT8 = 255
_LEAST_SCALE = 1e-9
"""Scale of a row of zeros."""


def write(
    shape: Shape,
    weights: Mapping[str, WeightArray],
    pooling: str,
    ranges: ActivationRanges,
    *,
    signed_weights: bool,
) -> tuple[bytes, dict[str, WeightArray]]:
    """Write the graph from token ids and mask (b, t), int64, to unit vectors (b, d), and the weights to give it.

    Args:
        pooling: "mean" over the tokens of the mask, or "cls", the first token.
        ranges: of the activations, for smoothing.
        signed_weights: store weights as signed numbers. Vectors are the same for both. Signed is the quick form
            with VNNI or dot products. Other x86 processors saturate sums of signed weights, so they need
            unsigned ones.

    Raises:
        ValueError: weights or ranges are of another size than ``shape``.
    """
    graph = Int8Graph(shape, weights, ranges, signed_weights=signed_weights)
    graph.encode(pooling)
    return graph.serialize(), graph.initializers


class Int8Graph(BertGraph):
    """The graph in eight bits. Tokens of all texts are the rows of one matrix, (b t, d)."""

    def __init__(
        self, shape: Shape, weights: Mapping[str, WeightArray], ranges: ActivationRanges, *, signed_weights: bool
    ) -> None:
        """Begin a graph.

        Raises:
            ValueError: weights or ranges are of another size than ``shape``.
        """
        super().__init__(shape, weights, "dynamic-int8")
        if not ranges.attention.shape == ranges.feed_forward.shape == (shape.layers, shape.width):
            raise ValueError(f"the activation ranges are not of {shape.layers} layers and {shape.width} channels")
        self._ranges = ranges
        self._signed = signed_weights

    def encode(self, pooling: str) -> None:
        """Add all steps from token ids to unit vectors."""
        width = self._shape.width
        sums = self._add("Reshape", self._embedding_sum(), self._whole(-1, width))
        bias = self.attention_bias()
        size = self._add("Shape", "input_ids")
        divided = self._add("Concat", size, self._whole(self._shape.heads, width // self._shape.heads), axis=0)
        before = EMBEDDINGS
        for layer in range(self._shape.layers):
            name = f"encoder.layer.{layer}"
            sums = self._attention_sum(name, sums, before, self._ranges.attention[layer], divided, bias)
            sums = self._feed_forward_sum(name, sums, self._ranges.feed_forward[layer])
            before = f"{name}.output"
        tokens = self._norm(before, sums)
        self.add_pooling(
            self._add("Reshape", tokens, self._add("Concat", size, self._whole(width), axis=0)), pooling
        )

    def _attention_sum(self, name: str, sums: str, before: str, ranges: Vector, divided: str, bias: str) -> str:
        """x + attention(x) of x = norm(sums), by the norm ``before``: (b t, d)."""
        width = self._shape.width
        parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        factors = compute_smoothing_factors(
            ranges, np.concatenate([self._weights[f"{part}.weight"] for part in parts])
        )
        output = f"{name}.attention.output.dense"
        projected_bias = self._weights[f"{output}.weight"] @ self._weights[f"{parts[2]}.bias"]
        smooth, residual = self._branches(before, sums, factors, self._weights[f"{output}.bias"] + projected_bias)
        rows = self._signed_rows(smooth)
        query, key, value = (self._product(part, rows, factors) for part in parts)
        query = self._add("Add", query, self._give(f"{parts[0]}.bias", self._weights[f"{parts[0]}.bias"]))
        heads = self._attend((query, key, value), divided, self._whole(-1, width), bias)
        return self._add("Add", self._product(output, self._signed_rows(heads)), residual)

    def _feed_forward_sum(self, name: str, sums: str, ranges: Vector) -> str:
        """x + feed_forward(x) of x = norm(sums): (b t, d)."""
        inner, outer = f"{name}.intermediate.dense", f"{name}.output.dense"
        factors = compute_smoothing_factors(ranges, self._weights[f"{inner}.weight"])
        smooth, residual = self._branches(f"{name}.attention.output", sums, factors, self._weights[f"{outer}.bias"])
        product = self._product(inner, self._signed_rows(smooth), factors)
        bias = self._give(f"{inner}.bias", self._weights[f"{inner}.bias"])
        widened = self._add_microsoft("BiasGelu", product, bias)
        return self._add("Add", self._product(outer, self._gelu_rows(widened)), residual)

    def _branches(self, name: str, sums: str, factors: Vector, bias: Vector) -> tuple[str, str]:
        """Normalised sums over ``factors``, to be rounded, and normalised sums plus ``bias``, to be added."""
        scale: Vector = self._weights[f"{name}.LayerNorm.weight"]
        shift: Vector = self._weights[f"{name}.LayerNorm.bias"]
        smooth = self._standardise(f"{name}.smooth", sums, scale / factors, shift / factors)
        return smooth, self._standardise(f"{name}.residual", sums, scale, shift + bias)

    def _signed_rows(self, values: str) -> tuple[str, str, str]:
        """Whole numbers around ``ZERO``, (r, k), the scale of each row, (r, 1), and the number for 0."""
        largest = self._add("ReduceMax", self._add("Abs", values), axes=(-1,), keepdims=1)
        scales = self._add("Mul", largest, self._real(1 / (_MOST_UINT8 - ZERO)))
        return self._rows(values, self._add("Max", scales, self._real(_LEAST_SCALE)), ZERO)

    def _gelu_rows(self, values: str) -> tuple[str, str, str]:
        """Like ``_signed_rows`` for results of GELU. The least scale is the one that holds ``-GELU_DEPTH``."""
        largest = self._add("ReduceMax", values, axes=(-1,), keepdims=1)
        scales = self._add("Mul", largest, self._real(1 / (_MOST_UINT8 - GELU_ZERO)))
        return self._rows(values, self._add("Max", scales, self._real(GELU_DEPTH / GELU_ZERO)), GELU_ZERO)

    def _rows(self, values: str, scales: str, zero: int) -> tuple[str, str, str]:
        by_row = self._add("Reshape", scales, self._whole(-1))
        zero_point = self._uint8_constant(zero)
        zeros = self._add("Expand", zero_point, self._add("Shape", by_row))
        return self._add("QuantizeLinear", values, by_row, zeros, axis=0), scales, zero_point

    def _product(self, name: str, rows: tuple[str, str, str], factors: Vector | None = None) -> str:
        """x Wᵀ, (r, n), of rounded rows (r, k) that were divided by ``factors`` (k,) before."""
        weights = self._weights[f"{name}.weight"]
        numbers, scales = quantise_weights(weights if factors is None else weights * factors)
        values, row_scales, zero_point = rows
        inputs = [
            values,
            self._give(f"{name}.numbers", numbers),
            self._real(1.0),
            self._give(f"{name}.scales", scales),
            zero_point,
        ]
        if not self._signed:
            self._give(f"{name}.numbers", (numbers.astype(np.int16) + ZERO).astype(np.uint8))
            inputs.append(self._uint8_constant(ZERO))
        return self._add("Mul", self._add_microsoft("MatMulIntegerToFloat", *inputs), row_scales)

    def _uint8_constant(self, number: int) -> str:
        return self._give(f"zero.{number}", np.array(number, dtype=np.uint8))

    def _add_microsoft(self, operator: str, *inputs: str) -> str:
        result = f"{operator}.{len(self.nodes)}"
        self.nodes.append(OnnxNode(operator, inputs, [result], domain="com.microsoft"))
        return result
