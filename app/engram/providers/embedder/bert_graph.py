"""BERT's encoder as an ONNX graph, written from a model folder's configuration and weights, without torch.

The steps are those of Devlin et al. (2019), layer by layer as in Vaswani et al. (2017), normalised after each sum:
x = norm(x + attention(x)), x = norm(x + feed_forward(x)). Weights bear the names that BERT's are published with.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.providers.embedder.int8_weights import BLOCK, round_weights
from engram.providers.embedder.onnx_messages import FLOAT, INT8, INT64, UINT8, OnnxNode, Tensor, model
from engram.providers.embedder.precisions import Precision
from engram.providers.embedder.weight_files import PACKED_ZERO, PackedNames, WeightArray

Array = NDArray[np.float32] | NDArray[np.int64]

_KINDS = {np.dtype(np.float32): FLOAT, np.dtype(np.uint8): UINT8, np.dtype(np.int8): INT8}
EMBEDDINGS = "embeddings"
_UNUSED = ("embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias")
"""Published along with the weights: numbers 0, 1, 2, ... and a layer that sentence encoders do not read."""
_LINEAR_MAPS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
"""Of each layer."""


@dataclass(frozen=True)
class Shape:
    """Shape of a model: numbers of layers and heads, width, the norm's epsilon."""

    layers: int
    heads: int
    width: int
    epsilon: float


def read_shape(config: Mapping[str, Any]) -> Shape | None:
    """The shape that a ``config.json`` states, or None if it is not of the encoder that is written here."""
    plain = (
        config.get("model_type") == "bert"
        and config.get("hidden_act") == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not config.get("is_decoder")
        and not config.get("add_cross_attention")
        and config["hidden_size"] % config["num_attention_heads"] == 0
    )
    if not plain:
        return None
    return Shape(
        config["num_hidden_layers"], config["num_attention_heads"], config["hidden_size"], config["layer_norm_eps"]
    )


def list_weight_names(shape: Shape) -> frozenset[str]:
    """Names of all the weights that the graph reads."""
    norms = ("attention.output.LayerNorm", "output.LayerNorm")
    steps = [f"encoder.layer.{layer}.{step}" for layer in range(shape.layers) for step in (*_LINEAR_MAPS, *norms)]
    tables = (f"{EMBEDDINGS}.{kind}_embeddings.weight" for kind in ("word", "position", "token_type"))
    return frozenset(
        (
            *tables,
            *(f"{step}.{part}" for step in (*steps, f"{EMBEDDINGS}.LayerNorm") for part in ("weight", "bias")),
        )
    )


def list_adapted_maps(shape: Shape, adapted_layers: int) -> frozenset[str]:
    """Names of the linear maps of the last ``adapted_layers`` layers."""
    layers = range(max(0, shape.layers - adapted_layers), shape.layers)
    return frozenset(f"encoder.layer.{layer}.{name}" for layer in layers for name in _LINEAR_MAPS)


def can_write(shape: Shape, names: frozenset[str]) -> bool:
    """Whether weights of these names are all that the graph reads, and none that would change what it computes."""
    return names - set(_UNUSED) == list_weight_names(shape)


def write(
    shape: Shape,
    weights: Mapping[str, WeightArray],
    pooling: str,
    precision: Precision = "float32",
    adapted_layers: int = 0,
) -> tuple[bytes, dict[str, WeightArray]]:
    """The graph from token ids and mask (b, t), int64, to unit vectors (b, d), and the weights to give it by name.

    ``pooling`` is "mean" over the tokens of the mask, or "cls", the first token. Every row of the mask must have a
    one. The last ``adapted_layers`` layers take the arrays of a low-rank adapter as optional inputs.

    Raises ``ValueError`` if the weights are of another width than ``shape``.
    """
    graph = BertGraph(shape, weights, precision, adapted_layers)
    graph.encode(pooling)
    return graph.serialize(), graph.initializers


class BertGraph:
    """Nodes in the order in which they run; every method adds some and returns the name of their result."""

    def __init__(
        self,
        shape: Shape,
        weights: Mapping[str, WeightArray],
        precision: Precision = "float32",
        adapted_layers: int = 0,
    ) -> None:
        """Begin a graph.

        Args:
            adapted_layers: the last so many layers take arrays of a low-rank adapter.

        Raises:
            ValueError: the weights are of another width than ``shape``.
        """
        width = weights[f"{EMBEDDINGS}.position_embeddings.weight"].shape[1]
        if width != shape.width:
            raise ValueError(f"the weights are {width} wide, the configuration says {shape.width}")
        self._shape = shape
        self._weights = weights
        self._precision = precision
        self.nodes: list[OnnxNode] = []
        self.initializers: dict[str, WeightArray] = {}
        self.constants: dict[str, Array] = {}
        self._adapted = list_adapted_maps(shape, adapted_layers)
        self._adapter_inputs: list[Tensor] = []

    def encode(self, pooling: str) -> None:
        """Add all steps from token ids to unit vectors."""
        tokens = self.embeddings()
        bias = self.attention_bias()
        for layer in range(self._shape.layers):
            tokens = self.layer(f"encoder.layer.{layer}", tokens, bias)
        self.add_pooling(tokens, pooling)

    def serialize(self, extra_results: Mapping[str, int] = MappingProxyType({})) -> bytes:
        """The graph as an ONNX model.

        Args:
            extra_results: results (b, t, n) to give out besides the vectors, by name, and their n.
        """
        return model(
            self.nodes,
            inputs=[
                *(Tensor(name, INT64, ("batch", "tokens")) for name in ("input_ids", "attention_mask")),
                *self._adapter_inputs,
            ],
            outputs=[
                Tensor("embedding", FLOAT, ("batch", self._shape.width)),
                *(Tensor(name, FLOAT, ("batch", "tokens", width)) for name, width in extra_results.items()),
            ],
            initializers=[
                Tensor(name, _KINDS[array.dtype], array.shape) for name, array in self.initializers.items()
            ],
            constants=self.constants,
        )

    def embeddings(self) -> str:
        """Sum of word, position and token type, normalised: (b, t, d)."""
        return self._norm(EMBEDDINGS, self._embedding_sum())

    def _embedding_sum(self) -> str:
        """Sum of word, position and token type: (b, t, d). All tokens are of the first type."""
        positions = self._weights[f"{EMBEDDINGS}.position_embeddings.weight"]
        first_type = self._weights[f"{EMBEDDINGS}.token_type_embeddings.weight"][0]
        table = self._give("positions", positions + first_type)
        width = self._add("Slice", self._add("Shape", "input_ids"), self._whole(1), self._whole(2))
        places = self._add("Slice", table, self._whole(0), width, self._whole(0))
        return self._add("Add", self._words(), places)

    def _words(self) -> str:
        """Look up the vector of each token by itself: (b, t, d)."""
        name = f"{EMBEDDINGS}.word_embeddings.weight"
        packed = PackedNames(name)
        if packed.numbers not in self._weights:
            return self._add("Gather", self._give("words", self._weights[name]), "input_ids")
        numbers, scales = (self._give(part, self._weights[part]) for part in (packed.numbers, packed.scales))
        both = self._add("Cast", self._add("Gather", numbers, "input_ids"), to=FLOAT)
        upper = self._add("Floor", self._add("Mul", both, self._real(1 / 16)))
        lower = self._add("Sub", both, self._add("Mul", upper, self._real(16.0)))
        centred = self._add("Sub", self._add("Concat", lower, upper, axis=-1), self._real(float(PACKED_ZERO)))
        scale = self._add("Unsqueeze", self._add("Gather", scales, "input_ids"), self._whole(-1))
        return self._add("Reshape", self._add("Mul", centred, scale), self._whole(0, 0, self._shape.width))

    def attention_bias(self) -> str:
        """0 for a token of the mask, the least number for one outside it, whose share is then 0: (b, 1, 1, t)."""
        outside = self._add("Sub", self._real(1.0), self._add("Cast", "attention_mask", to=FLOAT))
        least = self._real(float(np.finfo(np.float32).min))
        return self._add("Unsqueeze", self._add("Mul", outside, least), self._whole(1, 2))

    def layer(self, name: str, tokens: str, bias: str) -> str:
        """Attention and feed-forward network, each added to what it read: (b, t, d)."""
        attended = self._dense(
            f"{name}.attention.output.dense", self._attention(f"{name}.attention.self", tokens, bias)
        )
        tokens = self._norm(f"{name}.attention.output", self._add("Add", attended, tokens))
        widened = self._gelu(self._dense(f"{name}.intermediate.dense", tokens))
        narrowed = self._dense(f"{name}.output.dense", widened)
        return self._norm(f"{name}.output", self._add("Add", narrowed, tokens))

    def add_pooling(self, tokens: str, pooling: str) -> None:
        """One unit vector for each text, (b, d), under the name "embedding"."""
        if pooling == "cls":
            vectors = self._add("Gather", tokens, self._constant(np.array(0)), axis=1)
        else:
            mask = self._add("Unsqueeze", self._add("Cast", "attention_mask", to=FLOAT), self._whole(2))
            # The mean's denominator is a scale, which the normalisation removes.
            vectors = self._add("ReduceSum", self._add("Mul", tokens, mask), self._whole(1), keepdims=0)
        self.nodes.append(OnnxNode("LpNormalization", [vectors], ["embedding"], {"axis": 1, "p": 2}))

    def _attention(self, name: str, tokens: str, bias: str) -> str:
        """Attention of all heads, put side by side: (b, t, d)."""
        size = self._shape.width // self._shape.heads
        query, key, value = (self._dense(f"{name}.{part}", tokens) for part in ("query", "key", "value"))
        divided = self._whole(0, 0, self._shape.heads, size)
        return self._attend((query, key, value), divided, self._whole(0, 0, self._shape.width), bias)

    def _attend(self, parts: tuple[str, str, str], divided: str, joined: str, bias: str) -> str:
        """softmax(q kᵀ / √(d / heads) + bias) v for each head, put side by side.

        Args:
            parts: query, key and value.
            divided: shape of each with its heads apart, (b, t, heads, d / heads).
            joined: shape of the result.
            bias: result of ``attention_bias``.
        """
        query, key, value = (self._add("Reshape", part, divided) for part in parts)
        nearness = self._add(
            "MatMul",
            self._add("Transpose", query, perm=(0, 2, 1, 3)),
            self._add("Transpose", key, perm=(0, 2, 3, 1)),
        )
        size = self._shape.width // self._shape.heads
        scores = self._add("Add", self._add("Div", nearness, self._real(size**0.5)), bias)
        heads = self._add(
            "MatMul", self._add("Softmax", scores, axis=-1), self._add("Transpose", value, perm=(0, 2, 1, 3))
        )
        return self._add("Reshape", self._add("Transpose", heads, perm=(0, 2, 1, 3)), joined)

    def _dense(self, name: str, values: str) -> str:
        """x Wᵀ + b; the weights are published with a row for each output."""
        weights = self._weights[f"{name}.weight"]
        bias = self._give(f"{name}.bias", self._weights[f"{name}.bias"])
        if self._precision == "int8":
            product = self._int8_product(name, values, weights)
        else:
            product = self._add("MatMul", values, self._give(f"{name}.weight", weights.T))
        result = self._add("Add", product, bias)
        return self._adapt(name, values, result, weights.shape) if name in self._adapted else result

    def _adapt(self, name: str, values: str, result: str, size: tuple[int, ...]) -> str:
        """result + x down up, with ``down`` (inputs, rank) and ``up`` (rank, outputs), of rank 0 by default."""
        outputs, inputs = size
        down = self._give_default(f"{name}.down", (inputs, "rank"))
        up = self._give_default(f"{name}.up", ("rank", outputs))
        return self._add("Add", result, self._add("MatMul", self._add("MatMul", values, down), up))

    def _give_default(self, name: str, shape: tuple[int | str, int | str]) -> str:
        """An input that has no rows or no columns where no adapter gives it some."""
        self._adapter_inputs.append(Tensor(name, FLOAT, shape))
        first, second = (0 if isinstance(length, str) else length for length in shape)
        self.constants[name] = np.zeros((first, second), dtype=np.float32)
        return name

    def _int8_product(self, name: str, values: str, weights: NDArray[np.float32]) -> str:
        """x Wᵀ of weights in eight bits, (n, k), and of inputs that are rounded alike (accuracy level 4)."""
        numbers, scales = round_weights(weights)
        outputs, inputs = weights.shape
        tensors = [values, self._give(f"{name}.numbers", numbers), self._give(f"{name}.scales", scales)]
        attributes = {"N": outputs, "K": inputs, "bits": 8, "block_size": BLOCK, "accuracy_level": 4}
        result = f"MatMulNBits.{len(self.nodes)}"
        self.nodes.append(OnnxNode("MatMulNBits", tensors, [result], attributes, domain="com.microsoft"))
        return result

    def _norm(self, name: str, values: str) -> str:
        scale, bias = (self._weights[f"{name}.LayerNorm.{part}"] for part in ("weight", "bias"))
        return self._standardise(f"{name}.LayerNorm", values, scale, bias)

    def _standardise(self, name: str, values: str, scale: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
        """Values with mean 0 and variance 1 in each row, times ``scale``, plus ``bias``, both (d,)."""
        parameters = self._give(f"{name}.weight", scale), self._give(f"{name}.bias", bias)
        return self._add("LayerNormalization", values, *parameters, axis=-1, epsilon=float(self._shape.epsilon))

    def _gelu(self, values: str) -> str:
        """x (1 + erf(x / √2)) / 2, in the form that onnxruntime makes one operator of."""
        error = self._add("Erf", self._add("Div", values, self._real(2**0.5)))
        return self._add("Mul", self._add("Mul", values, self._add("Add", error, self._real(1.0))), self._real(0.5))

    def _add(self, operator: str, *inputs: str, **attributes: int | float | tuple[int, ...]) -> str:
        result = f"{operator}.{len(self.nodes)}"
        self.nodes.append(OnnxNode(operator, inputs, [result], attributes))
        return result

    def _give(self, name: str, array: WeightArray) -> str:
        self.initializers[name] = np.ascontiguousarray(array)
        return name

    def _whole(self, *values: int) -> str:
        return self._constant(np.array(values, dtype=np.int64))

    def _real(self, value: float) -> str:
        return self._constant(np.array(value, dtype=np.float32))

    def _constant(self, array: Array) -> str:
        name = f"{array.dtype}.{array.shape}.{array.tolist()}"
        self.constants[name] = array
        return name
