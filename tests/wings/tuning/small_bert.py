"""A random encoder of three layers, 16 wide, with 40 words."""

import numpy as np
from numpy.typing import NDArray

from engram.wings.tuning.core.bert_gradients import BertWeights, list_adapted_maps

WIDTH, INNER, LAYERS, WORDS, POSITIONS = 16, 24, 3, 40, 12


def make_weights(pooling: str = "mean", dimension: int | None = None) -> BertWeights:
    random = np.random.default_rng(1)

    def draw(*shape: int, scale: float = 1.0) -> NDArray[np.float32]:
        return (scale * random.normal(size=shape)).astype(np.float32)

    arrays = {
        "embeddings.word_embeddings.weight": draw(WORDS, WIDTH),
        "embeddings.position_embeddings.weight": draw(POSITIONS, WIDTH, scale=0.3),
        "embeddings.token_type_embeddings.weight": draw(2, WIDTH, scale=0.3),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        sizes = {"intermediate.dense": (INNER, WIDTH), "output.dense": (WIDTH, INNER)}
        parts = (*(f"attention.self.{part}" for part in ("query", "key", "value")), "attention.output.dense")
        for part, (outputs, inputs) in {**dict.fromkeys(parts, (WIDTH, WIDTH)), **sizes}.items():
            arrays[f"{name}.{part}.weight"] = draw(outputs, inputs, scale=1.5 / np.sqrt(inputs))
            arrays[f"{name}.{part}.bias"] = draw(outputs, scale=0.1)
        norms += [f"{name}.attention.output.LayerNorm", f"{name}.output.LayerNorm"]
    for norm in norms:
        arrays[f"{norm}.weight"] = 1 + draw(WIDTH, scale=0.2)
        arrays[f"{norm}.bias"] = draw(WIDTH, scale=0.1)
    return BertWeights(arrays, LAYERS, 4, 1e-12, pooling, "f" * 64, None, dimension)


def make_adapter(weights: BertWeights, layers: int, rank: int = 3) -> dict[str, NDArray[np.float32]]:
    random = np.random.default_rng(2)
    adapter = {}
    for name in list_adapted_maps(weights, layers):
        outputs, inputs = weights.arrays[f"{name}.weight"].shape
        adapter[f"{name}.down"] = (0.3 * random.normal(size=(inputs, rank))).astype(np.float32)
        adapter[f"{name}.up"] = (0.3 * random.normal(size=(rank, outputs))).astype(np.float32)
    return adapter
