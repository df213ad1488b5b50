"""Learning of an adapter."""

from dataclasses import replace

import numpy as np
import pytest

from engram.wings.tuning.core.bert_gradients import BertWeights
from engram.wings.tuning.core.learn_adapter import (
    Adapter,
    TuningOptions,
    TuningSamples,
    compute_loss_slope,
    learn_prepared,
    measure_temperature,
    prepare_questions,
)
from tests.wings.tuning.small_bert import make_weights

OPTIONS = TuningOptions(rank=2, adapted_layers=2, epochs=8, batch_size=4, rate=5e-3, pull=0.1)


def make_samples(count: int = 12) -> TuningSamples:
    """Questions that begin with one of three words; the word says which passage answers."""
    random = np.random.default_rng(4)
    passages = random.normal(size=(9, 16)).astype(np.float32)
    passages /= np.linalg.norm(passages, axis=1, keepdims=True)
    questions = [np.array([1, 10 + row % 3, *random.integers(15, 40, 3), 2]) for row in range(count)]
    supported = [[row % 3] for row in range(count)]
    return TuningSamples(
        [f"q{row:02}" for row in range(count)], questions, supported, [[]] * count, np.ones(count), passages
    )


def rank_of_supported(vectors: np.ndarray, samples: TuningSamples) -> float:
    cosines = vectors @ samples.passages.T
    return float(np.mean([(row > row[one[0]]).sum() for row, one in zip(cosines, samples.supported, strict=True)]))


def learn(weights: BertWeights, samples: TuningSamples, options: TuningOptions = OPTIONS, seed: int = 0) -> Adapter:
    samples = samples.sort()
    return learn_prepared(weights, samples, prepare_questions(weights, samples.questions, options), options, seed)


def test_questions_come_near_their_passages() -> None:
    weights, samples = make_weights(), make_samples()
    adapter = learn(weights, samples)
    prepared = prepare_questions(weights, samples.questions, OPTIONS)
    tuned = prepared.embed(weights, np.arange(12), adapter.widen())
    assert rank_of_supported(prepared.base, samples) > 2
    assert rank_of_supported(tuned, samples) < 1


def test_the_order_of_samples_does_not_matter() -> None:
    weights, samples = make_weights(), make_samples()
    learned = learn(weights, samples, OPTIONS, seed=3).to_bytes()
    assert learn(weights, samples.select(range(11, -1, -1)), OPTIONS, seed=3).to_bytes() == learned
    assert learn(weights, samples, OPTIONS, seed=4).to_bytes() != learned


def test_the_pull_keeps_questions_where_they_are() -> None:
    weights, samples = make_weights(), make_samples()
    prepared = prepare_questions(weights, samples.questions, OPTIONS)
    moved = []
    for pull in (0.0, 100.0):
        adapter = learn(weights, samples, replace(OPTIONS, pull=pull))
        tuned = prepared.embed(weights, np.arange(12), adapter.widen())
        moved.append(1 - float((tuned * prepared.base).sum(axis=1).mean()))
    assert moved[1] < moved[0] / 3


def test_slope_of_the_loss_is_that_of_finite_differences() -> None:
    samples = replace(make_samples(4), rejected=[[5], [], [6, 7], []], weights=np.array([1.0, 0.5, 2.0, 0.5]))
    base, vectors = np.random.default_rng(0).normal(size=(2, 4, 16)).astype(np.float32)
    batch, temperature = np.arange(4), 0.7

    def loss(moved: np.ndarray) -> float:
        total = 0.0
        for row in range(4):
            logits = moved[row] @ samples.passages.T.astype(float) / temperature
            logits[samples.rejected[row]] += np.log(OPTIONS.rejected_count)
            chances = logits - np.log(np.exp(logits).sum())
            pull = OPTIONS.pull * (1 - moved[row] @ base[row])
            total += samples.weights[row] * (pull - chances[samples.supported[row]].mean()) / 4
        return total

    slope = compute_loss_slope(vectors, base, samples, batch, samples.weights, temperature, OPTIONS)
    for place in ((0, 0), (1, 5), (2, 9), (3, 15)):
        step = np.zeros((4, 16))
        step[place] = 1e-4
        found = (loss(vectors + step) - loss(vectors - step)) / 2e-4
        assert slope[place] == pytest.approx(found, abs=1e-5)


def test_temperature_follows_the_spread_of_cosines() -> None:
    random = np.random.default_rng(0)
    wide = random.normal(size=(60, 16)).astype(np.float32)
    narrow = wide + 6  # a common direction, as some encoders have
    measured = []
    for vectors in (wide, narrow):
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        measured.append(measure_temperature(unit[:20], unit[20:]))
    assert measured[1] < measured[0] / 5


def test_bytes() -> None:
    adapter = learn(make_weights(), make_samples(), OPTIONS)
    content = adapter.to_bytes()
    again = Adapter.from_bytes(content)
    assert (again.fingerprint, again.rank, sorted(again.arrays)) == ("f" * 64, 2, sorted(adapter.arrays))
    assert all(np.array_equal(again.arrays[name], array) for name, array in adapter.arrays.items())
    for wrong in (b"", b"PK" + content, content[:-1]):
        with pytest.raises(ValueError, match="adapter"):
            Adapter.from_bytes(wrong)


def test_samples_need_supported_passages() -> None:
    with pytest.raises(ValueError, match="supported passage"):
        replace(make_samples(2), supported=[[1], []])
    with pytest.raises(ValueError, match="a weight"):
        replace(make_samples(2), weights=np.ones(3))
