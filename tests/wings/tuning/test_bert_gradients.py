"""Forward and backward pass of an encoder with adapters: finite differences, and torch."""

import numpy as np
import pytest

from engram.wings.tuning.core.bert_gradients import (
    AdaptedPass,
    BertWeights,
    embed_tokens,
    list_adapted_maps,
    run_frozen_layers,
)
from tests.wings.tuning.small_bert import make_adapter, make_weights

pytestmark = pytest.mark.torch

TOKENS = [np.array([1, 7, 3, 9, 2]), np.array([1, 4, 4, 8, 11, 30, 5, 6, 2]), np.array([1, 20, 2])]


def run(weights: BertWeights, adapter: dict, layers: int) -> AdaptedPass:
    texts = run_frozen_layers(weights, embed_tokens(weights, TOKENS), layers)
    return AdaptedPass(weights, texts, adapter, layers)


@pytest.mark.parametrize(("pooling", "layers", "dimension"), [("mean", 2, None), ("cls", 3, None), ("mean", 1, 8)])
def test_gradients_are_finite_differences(pooling: str, layers: int, dimension: int | None) -> None:
    weights = make_weights(pooling=pooling, dimension=dimension)
    adapter = make_adapter(weights, layers)
    of_vectors = (
        np.random.default_rng(3).normal(size=run(weights, adapter, layers).vectors.shape).astype(np.float32)
    )
    gradients = run(weights, adapter, layers).compute_gradients(of_vectors)
    assert sorted(gradients) == sorted(adapter)

    def loss(name: str, step: np.ndarray) -> float:
        vectors = run(weights, {**adapter, name: adapter[name] + step}, layers).vectors
        return float((vectors.astype(float) * of_vectors).sum())

    for name in (f"{part}.{side}" for part in list_adapted_maps(weights, layers) for side in ("down", "up")):
        direction = gradients[name] / np.linalg.norm(gradients[name])
        step = np.float32(0.02) * direction
        slope = (loss(name, step) - loss(name, -step)) / 0.04
        assert slope == pytest.approx(float(np.linalg.norm(gradients[name])), rel=0.02), name


def test_torch_has_the_same_vectors_and_gradients() -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    weights = make_weights()
    config = transformers.BertConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=3, num_attention_heads=4, intermediate_size=24,
        max_position_embeddings=12, layer_norm_eps=weights.epsilon,
    )  # fmt: skip
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    model.load_state_dict({name: torch.tensor(array) for name, array in weights.arrays.items()})
    adapter = make_adapter(weights, 2)
    parameters = {name: torch.tensor(array, requires_grad=True) for name, array in adapter.items()}
    for name, part in model.named_modules():
        if f"{name}.down" in parameters:
            part.register_forward_hook(
                lambda _part, given, result, name=name: (
                    result + given[0] @ parameters[f"{name}.down"] @ parameters[f"{name}.up"]
                )
            )
    width = max(map(len, TOKENS))
    token_ids = torch.tensor(np.array([np.pad(ids, (0, width - len(ids))) for ids in TOKENS]))
    mask = torch.tensor(np.array([np.arange(width) < len(ids) for ids in TOKENS])).float()
    states = model(input_ids=token_ids, attention_mask=mask).last_hidden_state
    vectors = torch.nn.functional.normalize((states * mask[..., None]).sum(1), dim=1)
    found = run(weights, adapter, 2)
    assert np.abs(vectors.detach().numpy() - found.vectors).max() < 1e-5

    of_vectors = np.random.default_rng(5).normal(size=found.vectors.shape).astype(np.float32)
    (vectors * torch.tensor(of_vectors)).sum().backward()
    gradients = found.compute_gradients(of_vectors)
    for name, parameter in parameters.items():
        expected = parameter.grad.numpy()
        assert np.abs(gradients[name] - expected).max() < 1e-3 * np.abs(expected).max(), name


def test_a_text_does_not_depend_on_its_batch() -> None:
    weights = make_weights()
    adapter = make_adapter(weights, 2)
    texts = run_frozen_layers(weights, embed_tokens(weights, TOKENS), 2)
    together = AdaptedPass(weights, texts, adapter, 2).vectors
    for row in range(len(TOKENS)):
        alone = AdaptedPass(weights, texts.select(np.array([row])), adapter, 2).vectors[0]
        assert np.abs(alone - together[row]).max() < 1e-5


def test_words_by_vocabulary() -> None:
    weights = make_weights()
    vocabulary = np.unique(np.concatenate(TOKENS))
    name = "embeddings.word_embeddings.weight"
    few = BertWeights(
        {**weights.arrays, name: weights.arrays[name][vocabulary]}, 3, 4, weights.epsilon, "mean", "f", vocabulary
    )
    assert np.array_equal(embed_tokens(few, TOKENS).states, embed_tokens(weights, TOKENS).states)
