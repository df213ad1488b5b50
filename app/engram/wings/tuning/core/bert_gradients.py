"""Forward and backward pass of a BERT-like encoder with low-rank adapters, in NumPy.

The encoder is that of Devlin et al. (2019): x = norm(x + attention(x)), x = norm(x + feed_forward(x)). Adapters are
those of Hu et al. (2021), "LoRA": a linear map x Wᵀ + b becomes x Wᵀ + b + x down up. Only ``down`` and ``up`` get
gradients. Layers below the first adapted one never change, so their result is computed once for each text
(``run_frozen_layers``), and the backward pass stops above them.

Texts are not padded: their tokens are the rows of one matrix, (n, d). Only attention needs texts apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]
Ids = NDArray[np.int64]

LINEAR_MAPS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
"""Linear maps of a layer, by their published names. Each of them gets an adapter."""

_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
_ERF_SCALE = 0.3275911
"""Abramowitz and Stegun, 7.1.26: erf z = 1 - (a₁ t + ... + a₅ t⁵) exp(-z²), t = 1 / (1 + p z); off by 1.5e-7."""


@dataclass(frozen=True)
class BertWeights:
    """Weights of an encoder in float32, by the names that BERT's are published with.

    Attributes:
        arrays: weights by name. A linear map is (outputs, inputs).
        layers: number of layers.
        heads: number of attention heads.
        epsilon: added to the variance by each norm.
        pooling: "mean" over a text's tokens, or "cls", its first token.
        fingerprint: of the encoder (SHA-256, hex).
        vocabulary: the token ids that the rows of the word table stand for, ascending; None: row i is token i.
        dimension: numbers that are kept of each vector; None: all.
    """

    arrays: Mapping[str, Matrix]
    layers: int
    heads: int
    epsilon: float
    pooling: str
    fingerprint: str
    vocabulary: Ids | None = None
    dimension: int | None = None


@dataclass(frozen=True)
class Texts:
    """Hidden states of some texts at the entry of a layer.

    Attributes:
        states: (n, d), the tokens of all texts one after the other.
        lengths: (b,), tokens of each text; they sum to n.
    """

    states: Matrix
    lengths: Ids

    def select(self, rows: Ids) -> "Texts":
        """The texts of these rows, in their order."""
        ends = np.cumsum(self.lengths)
        starts = ends - self.lengths
        states = np.concatenate([self.states[starts[row] : ends[row]] for row in rows])
        return Texts(states, self.lengths[rows])


@dataclass(frozen=True)
class _Slots:
    """Places of tokens in a matrix in which every text has as many rows as the longest one."""

    places: Ids
    outside: NDArray[np.bool_]

    @classmethod
    def of(cls, lengths: Ids) -> "_Slots":
        position = np.arange(int(lengths.max()))
        inside = position < lengths[:, None]
        return cls(np.flatnonzero(inside), ~inside[:, None, None, :])

    def split(self, rows: Matrix, heads: int) -> Matrix:
        """Rows (n, d) by text and head: (b, heads, t, d / heads)."""
        texts, longest = self.outside.shape[0], self.outside.shape[-1]
        padded = np.zeros((texts * longest, rows.shape[1]), dtype=np.float32)
        padded[self.places] = rows
        return padded.reshape(texts, longest, heads, -1).transpose(0, 2, 1, 3)

    def join(self, parts: Matrix) -> Matrix:
        """The reverse of ``split``."""
        texts, heads, longest, size = parts.shape
        return parts.transpose(0, 2, 1, 3).reshape(texts * longest, heads * size)[self.places]


@dataclass(frozen=True)
class _LayerPass:
    """Values of a layer's forward pass that its backward pass needs."""

    tokens: Matrix
    low: Mapping[str, Matrix]
    parts: tuple[Matrix, Matrix, Matrix]
    shares: Matrix
    attended: Matrix
    first_norm: tuple[Matrix, Matrix]
    middle: Matrix
    widened: Matrix
    slope: Matrix
    activated: Matrix
    second_norm: tuple[Matrix, Matrix]


def list_adapted_maps(weights: BertWeights, adapted_layers: int) -> list[str]:
    """Names of the linear maps of the last ``adapted_layers`` layers, in order."""
    layers = range(weights.layers - adapted_layers, weights.layers)
    return [f"encoder.layer.{layer}.{name}" for layer in layers for name in LINEAR_MAPS]


def embed_tokens(weights: BertWeights, token_ids: Sequence[Ids]) -> Texts:
    """Sum of word, position and token type of each token, normalised: the entry of the first layer."""
    lengths = np.array([len(ids) for ids in token_ids], dtype=np.int64)
    rows = np.concatenate(token_ids)
    if weights.vocabulary is not None:
        rows = np.searchsorted(weights.vocabulary, rows)
    places = np.concatenate([np.arange(length) for length in lengths])
    tables = weights.arrays
    sums = (
        tables["embeddings.word_embeddings.weight"][rows]
        + tables["embeddings.position_embeddings.weight"][places]
        + tables["embeddings.token_type_embeddings.weight"][0]
    )
    return Texts(_norm(weights, "embeddings", sums)[0], lengths)


def run_frozen_layers(weights: BertWeights, texts: Texts, adapted_layers: int) -> Texts:
    """The texts at the entry of the first adapted layer, given those at the entry of the first layer."""
    slots, states = _Slots.of(texts.lengths), texts.states
    for layer in range(weights.layers - adapted_layers):
        states, _ = _run_layer(weights, layer, states, slots, {})
    return Texts(states, texts.lengths)


class AdaptedPass:
    """Forward pass of the adapted layers over a batch of texts, and its backward pass."""

    def __init__(
        self, weights: BertWeights, texts: Texts, adapter: Mapping[str, Matrix], adapted_layers: int
    ) -> None:
        """Run the forward pass.

        Args:
            texts: at the entry of the first adapted layer.
            adapter: ``MAP.down``, (inputs, rank), and ``MAP.up``, (rank, outputs), by the map's name.
        """
        self._weights = weights
        self._lengths = texts.lengths
        self._slots = _Slots.of(texts.lengths)
        self._adapter = adapter
        self._layers = range(weights.layers - adapted_layers, weights.layers)
        self._passes: list[_LayerPass] = []
        states = texts.states
        for layer in self._layers:
            states, saved = _run_layer(weights, layer, states, self._slots, adapter)
            self._passes.append(saved)
        self._starts = np.cumsum(texts.lengths) - texts.lengths
        if weights.pooling == "cls":
            pooled = states[self._starts]
        else:
            pooled = np.add.reduceat(states, self._starts) / texts.lengths[:, None].astype(np.float32)
        self._width = pooled.shape[1]
        pooled = pooled[:, : weights.dimension]
        self._norms = np.linalg.norm(pooled, axis=1, keepdims=True)
        self.vectors: Matrix = pooled / self._norms

    def compute_gradients(self, of_vectors: Matrix) -> dict[str, Matrix]:
        """Gradients of the adapter's arrays, by their names, given that of the vectors, (b, d)."""
        radial = (of_vectors * self.vectors).sum(axis=1, keepdims=True)
        of_pooled = np.zeros((len(of_vectors), self._width), dtype=np.float32)
        of_pooled[:, : self.vectors.shape[1]] = (of_vectors - self.vectors * radial) / self._norms
        if self._weights.pooling == "cls":
            of_states = np.zeros((int(self._lengths.sum()), self._width), dtype=np.float32)
            of_states[self._starts] = of_pooled
        else:
            of_states = np.repeat(of_pooled / self._lengths[:, None].astype(np.float32), self._lengths, axis=0)
        gradients: dict[str, Matrix] = {}
        for layer, saved in zip(reversed(self._layers), reversed(self._passes), strict=True):
            of_states = self._go_back(layer, saved, of_states, gradients)
        return gradients

    def _go_back(self, layer: int, saved: _LayerPass, of_result: Matrix, gradients: dict[str, Matrix]) -> Matrix:
        """Gradient of a layer's entry, given that of its result; its adapters' are added to ``gradients``."""
        weights, slots, name = self._weights, self._slots, f"encoder.layer.{layer}"

        def back(part: str, values: Matrix, of_output: Matrix) -> Matrix:
            return self._map_back(f"{name}.{part}", values, saved.low, of_output, gradients)

        of_sum = _norm_back(weights, f"{name}.output", saved.second_norm, of_result)
        of_widened = back("output.dense", saved.activated, of_sum) * saved.slope
        of_middle = of_sum + back("intermediate.dense", saved.middle, of_widened)
        of_sum = _norm_back(weights, f"{name}.attention.output", saved.first_norm, of_middle)
        of_heads = slots.split(back("attention.output.dense", saved.attended, of_sum), weights.heads)

        query, key, value = saved.parts
        of_value = saved.shares.swapaxes(2, 3) @ of_heads
        of_shares = of_heads @ value.swapaxes(2, 3)
        of_scores = saved.shares * (of_shares - (of_shares * saved.shares).sum(axis=-1, keepdims=True))
        of_scores /= np.float32(np.sqrt(query.shape[-1]))
        of_tokens = of_sum
        for part, of_part in (
            ("query", of_scores @ key),
            ("key", of_scores.swapaxes(2, 3) @ query),
            ("value", of_value),
        ):
            of_tokens = of_tokens + back(f"attention.self.{part}", saved.tokens, slots.join(of_part))
        return of_tokens

    def _map_back(
        self,
        name: str,
        values: Matrix,
        low: Mapping[str, Matrix],
        of_output: Matrix,
        gradients: dict[str, Matrix],
    ) -> Matrix:
        """Gradient of what a linear map read, ``values``; ``low`` holds values times ``down``."""
        down, up = self._adapter[f"{name}.down"], self._adapter[f"{name}.up"]
        of_low = of_output @ up.T
        gradients[f"{name}.down"] = values.T @ of_low
        gradients[f"{name}.up"] = low[name].T @ of_output
        of_values: Matrix = of_output @ self._weights.arrays[f"{name}.weight"]
        of_values += of_low @ down.T
        return of_values


def _run_layer(
    weights: BertWeights, layer: int, tokens: Matrix, slots: _Slots, adapter: Mapping[str, Matrix]
) -> tuple[Matrix, _LayerPass]:
    """A layer's result, (n, d), and what its backward pass needs."""
    name = f"encoder.layer.{layer}"
    low: dict[str, Matrix] = {}

    def apply(part: str, values: Matrix) -> Matrix:
        return _map(weights, f"{name}.{part}", values, adapter, low)

    query, key, value = (
        slots.split(apply(f"attention.self.{part}", tokens), weights.heads) for part in ("query", "key", "value")
    )
    scores = query @ key.swapaxes(2, 3) / np.float32(np.sqrt(query.shape[-1]))
    shares = _softmax(np.where(slots.outside, np.float32(-np.inf), scores))
    attended = slots.join(shares @ value)
    middle, first = _norm(weights, f"{name}.attention.output", tokens + apply("attention.output.dense", attended))
    widened = apply("intermediate.dense", middle)
    activated, slope = _gelu(widened)
    result, second = _norm(weights, f"{name}.output", middle + apply("output.dense", activated))
    saved = _LayerPass(
        tokens, low, (query, key, value), shares, attended, first, middle, widened, slope, activated, second
    )
    return result, saved


def _map(
    weights: BertWeights, name: str, values: Matrix, adapter: Mapping[str, Matrix], low: dict[str, Matrix]
) -> Matrix:
    """x Wᵀ + b + x down up; x down is put into ``low``."""
    result: Matrix = values @ weights.arrays[f"{name}.weight"].T
    result += weights.arrays[f"{name}.bias"]
    if f"{name}.down" in adapter:
        low[name] = values @ adapter[f"{name}.down"]
        result += low[name] @ adapter[f"{name}.up"]
    return result


def _norm(weights: BertWeights, name: str, sums: Matrix) -> tuple[Matrix, tuple[Matrix, Matrix]]:
    """Normalised rows; with them the rows before scale and bias, and 1 / deviation of each, (n, 1)."""
    centred = sums - sums.mean(axis=1, keepdims=True)
    inverse = 1 / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(weights.epsilon))
    standard = centred * inverse
    scale, bias = (weights.arrays[f"{name}.LayerNorm.{part}"] for part in ("weight", "bias"))
    return standard * scale + bias, (standard, inverse)


def _norm_back(weights: BertWeights, name: str, saved: tuple[Matrix, Matrix], of_result: Matrix) -> Matrix:
    standard, inverse = saved
    of_standard = of_result * weights.arrays[f"{name}.LayerNorm.weight"]
    mean = of_standard.mean(axis=1, keepdims=True)
    along = (of_standard * standard).mean(axis=1, keepdims=True)
    of_sums: Matrix = (of_standard - mean - standard * along) * inverse
    return of_sums


def _gelu(values: Matrix) -> tuple[Matrix, Matrix]:
    """x Φ(x) and its slope Φ(x) + x φ(x), with Φ and φ of the standard normal distribution."""
    bell = np.exp(np.float32(-0.5) * values * values)
    inverse = 1 / (1 + np.float32(_ERF_SCALE / np.sqrt(2)) * np.abs(values))
    series = np.zeros_like(values)
    for factor in reversed(_ERF):
        series += np.float32(factor)
        series *= inverse
    tail = np.float32(0.5) * series * bell
    below = np.where(values < 0, tail, 1 - tail)
    return values * below, below + values * bell * np.float32(1 / np.sqrt(2 * np.pi))


def _softmax(scores: Matrix) -> Matrix:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares: Matrix = powers / powers.sum(axis=-1, keepdims=True)
    return shares
