"""Leaving one verdict out: of a memory's similarity, a hop's scores, features and ranking weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.ranking.complementarity import PAIR_FEATURES, CandidatePool
from engram.core.ranking.passage_scores import (
    BASE_FEATURES,
    PASSAGE_FEATURES,
    PLAIN_FEATURES,
    HopReach,
    add_complementarity,
    passage_features,
)
from engram.core.ranking.propagation import ChannelMemories, ReachedSentences, sentence_scores
from engram.core.ranking.sufficiency import compute_mean
from engram.core.ranking.weight_beliefs import WeightBelief, WeightEvidence, build_empty_evidence
from engram.wings.published.core.memory_filter import normalise_directions, update_memories
from engram.wings.why.core.influence import (
    compute_features,
    compute_means_without,
    compute_scores,
    compute_similarity_after,
    replace_memories,
)


def unit(values: np.ndarray) -> np.ndarray:
    return np.asarray(values / np.linalg.norm(values, axis=-1, keepdims=True))


@given(seed=st.integers(0, 10_000), target=st.sampled_from([0.0, 1.0]), perplexity=st.floats(0.001, 1.0))
def test_the_similarity_after_a_verdict_is_that_of_the_updated_memory(
    seed: int, target: float, perplexity: float
) -> None:
    draw = np.random.default_rng(seed)
    memory, question = unit(draw.normal(size=(1, 8))), unit(draw.normal(size=8))
    along = normalise_directions(question[None])
    update = update_memories(memory, np.array([perplexity]), along, np.array([target]), np.array([0.5]), 0.001)
    before = target - float(update.residuals[0])
    assert before == pytest.approx(float(memory[0] @ question))
    after = compute_similarity_after(before, float(update.gains[0]), float(update.residuals[0]))
    assert after == pytest.approx(float(update.vectors[0] @ question), abs=1e-6)


def test_a_memory_that_a_verdict_turns_around() -> None:
    assert compute_similarity_after(1.0, 1.0, -1.0) == 0.0  # m = q, K r = -1: nothing is left along q
    assert compute_similarity_after(0.0, 1.0, 1.0) == pytest.approx(1.0 / np.sqrt(2.0))
    assert compute_similarity_after(0.6, 0.0, 0.4) == 0.6


def candidates(count: int = 3) -> ReachedSentences:
    draw = np.random.default_rng(1)
    activation, semantic, *memory = draw.uniform(0.1, 0.9, size=(6, count))
    ids = np.arange(10, 10 + count)
    task, like_task, time, like_time = memory
    memories = {"task": ChannelMemories(task, like_task), "time": ChannelMemories(time, like_time)}
    return ReachedSentences(ids, ids // 2, activation, semantic, np.zeros(count), memories)


def test_memories_take_the_place_of_those_that_were_read() -> None:
    rows = candidates()
    changed = replace_memories(
        rows, {(11, "task"): (1.0, 0.0), (12, "time"): (0.25, 0.5), (99, "task"): (0.5, 0.5)}
    )
    task, time, before = changed.memories["task"], changed.memories["time"], rows.memories["task"].perplexity
    assert task.perplexity.tolist() == [before[0], 1.0, before[2]]
    assert task.similarity[1] == 0.0
    assert (time.perplexity[2], time.similarity[2]) == (0.25, 0.5)
    assert before[1] != 1.0  # the given ones stay
    for name in ("activation", "semantic", "agreement", "sentence_ids", "passage_ids"):
        assert getattr(changed, name) is getattr(rows, name)


def test_scores_without_a_memory() -> None:
    rows = candidates()
    np.testing.assert_array_equal(compute_scores(rows, {}), sentence_scores(rows))
    less = compute_scores(rows, {(10, "task"): (1.0, 0.0)})
    time = rows.memories["time"].factor[0]
    others = sentence_scores(rows)[1:]
    assert less[0] / less[1] == pytest.approx(
        rows.activation[0] * rows.semantic[0] * time / (others[0] * weight_sum(rows))
    )
    assert less.sum() == pytest.approx(1.0)


def weight_sum(rows: ReachedSentences) -> float:
    """What scores are divided by."""
    task, time = (memories.factor for memories in rows.memories.values())
    return float((rows.semantic * task * time * rows.activation).sum())


@given(seed=st.integers(0, 10_000), hops=st.integers(1, 5))
def test_features_are_those_of_other_hops_in_the_order_of_the_candidates(seed: int, hops: int) -> None:
    draw = np.random.default_rng(seed)
    passages = np.arange(1, 7)
    plain = draw.uniform(-0.2, 1, size=(len(passages), len(PLAIN_FEATURES)))
    titled = [{int(p): float(draw.uniform(0, 1)) for p in draw.choice(passages, 2)} for _ in range(hops)]

    def reaches() -> list[HopReach]:
        return [
            HopReach(
                draw.integers(1, 9, size=4),  # some of passages that are not ranked
                draw.uniform(-1, 1, size=4),
                np.sort(draw.uniform(0, 1, size=4))[::-1],
                titled[hop],
            )
            for hop in range(hops)
        ]

    before, after = reaches(), reaches()
    weights = draw.normal(size=len(BASE_FEATURES))
    made = CandidatePool(np.array([2, 4]), draw.normal(size=(2, len(passages), len(PAIR_FEATURES))))
    first, expected = (passage_features(passages, plain, hops) for hops in (before, after))
    order = draw.permutation(len(passages))
    for pool in (made, None):
        features = add_complementarity(first, pool, weights)[order]
        told = compute_features(features, passages[order], after, pool and pool.reorder(order), weights)
        np.testing.assert_allclose(told, add_complementarity(expected, pool, weights)[order], atol=1e-12)


def draw_evidence(seed: int, size: int) -> WeightEvidence:
    rows = np.random.default_rng(seed).normal(size=(5, size))
    return WeightEvidence(rows[0], rows[1:].T @ rows[1:])


@pytest.mark.parametrize("model", ["round", "reranker"])
def test_means_without_a_term_are_those_of_the_other_terms(model: str) -> None:
    size = len(PASSAGE_FEATURES)
    prior = WeightBelief(np.linspace(-1, 1, size), 3.0 * np.eye(size))
    terms = [draw_evidence(seed, size) for seed in range(4)]
    means = compute_means_without(model, prior, sum(terms, build_empty_evidence(size)), terms)
    assert means.shape == (4, size)
    for left_out, mean in enumerate(means):
        others = sum((term for at, term in enumerate(terms) if at != left_out), build_empty_evidence(size))
        np.testing.assert_allclose(mean, compute_mean(model, prior, others), atol=1e-9)
    assert compute_means_without(model, prior, build_empty_evidence(size), []).shape == (0, size)
