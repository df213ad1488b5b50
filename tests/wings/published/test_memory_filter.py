"""The update of memories: worked examples of Eqs. 10-13 and what holds for every memory and verdict."""

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from engram.wings.published.core import memory_filter
from engram.wings.published.core.memory_filter import MemoryUpdate, normalise_directions

Floats = NDArray[np.float64]
Q = 0.001
DIMENSION = 5

perplexities = st.floats(0.0, 1.0)
noises = st.floats(0.01, 100.0)
coordinates = st.floats(-1.0, 1.0)
verdicts = st.sampled_from([0.0, 1.0])
vectors = arrays(np.float64, DIMENSION, elements=coordinates).filter(lambda row: float(np.linalg.norm(row)) > 0.1)


@st.composite
def batches(draw: st.DrawFn) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Memories, perplexities, a direction, targets and noises; no memory is the direction's opposite."""
    count = draw(st.integers(1, 6))
    direction = draw(vectors)
    unit = direction / np.linalg.norm(direction)

    def is_turned(row: Floats) -> bool:
        return float(row @ unit) > -0.99 * float(np.linalg.norm(row))

    memories = np.stack([draw(vectors.filter(is_turned)) for _ in range(count)])
    columns = [np.array([draw(values) for _ in range(count)]) for values in (perplexities, verdicts, noises)]
    return memories, columns[0], direction, columns[1], columns[2]


def build_array(value: float) -> Floats:
    return np.array([value])


def update_memories(
    memories: NDArray[np.floating],
    perplexity: Floats,
    direction: NDArray[np.floating],
    targets: Floats,
    noise: Floats,
    process_noise: float,
) -> MemoryUpdate:
    """Move all memories along one direction of any length."""
    along = normalise_directions(direction[None])
    return memory_filter.update_memories(memories, perplexity, along, targets, noise, process_noise)


class TestWorkedExamples:
    def test_a_first_supporting_verdict(self) -> None:
        # m = (0.6, 0.8), q = (1, 0): s = 0.6, K = 1 / (1 + 0.5) = 2/3, r = 1 - 0.6, m' = m + K r q = (13/15, 0.8).
        update = update_memories(
            np.array([[0.6, 0.8]]), build_array(1.0), np.array([1.0, 0.0]), build_array(1.0), build_array(0.5), Q
        )
        moved = np.array([0.6 + (2 / 3) * 0.4, 0.8])

        assert_allclose(update.gains, [2 / 3])
        assert_allclose(update.residuals, [0.4])
        assert_allclose(update.perplexities, [1 / 3 + 0.001])
        assert_allclose(update.vectors, [moved / np.linalg.norm(moved)], rtol=1e-6)
        assert update.vectors.dtype == np.float32

    def test_a_rejection_moves_the_memory_away(self) -> None:
        # K = 1 / (1 + 1) = 1/2, r = 0 - 0.6, m' = (0.6 - 0.3, 0.8).
        update = update_memories(
            np.array([[0.6, 0.8]]), build_array(1.0), np.array([2.0, 0.0]), build_array(0.0), build_array(1.0), Q
        )
        moved = np.array([0.3, 0.8])

        assert_allclose(update.vectors, [moved / np.linalg.norm(moved)], rtol=1e-6)


class TestProperties:
    @given(batches())
    def test_rows_do_not_depend_on_their_batch(self, batch: tuple[Floats, Floats, Floats, Floats, Floats]) -> None:
        memories, perplexity, direction, targets, noise = batch
        whole = update_memories(memories, perplexity, direction, targets, noise, Q)
        for at in range(len(memories)):
            row = slice(at, at + 1)
            alone = update_memories(memories[row], perplexity[row], direction, targets[row], noise[row], Q)
            for part in ("vectors", "perplexities", "gains", "residuals"):
                assert_array_equal(getattr(whole, part)[row], getattr(alone, part))

    @pytest.mark.parametrize("dimension", [1, 7, 384, 1_024])
    @pytest.mark.parametrize("layout", ["C", "F"])
    def test_rows_of_any_length_and_layout_do_not_depend_on_their_batch(
        self, dimension: int, layout: Literal["C", "F"]
    ) -> None:
        draw = np.random.default_rng(dimension)
        memories = np.asarray(draw.normal(size=(9, dimension)).astype(np.float32), order=layout)
        direction = draw.normal(size=dimension).astype(np.float32)
        perplexity, targets, noise = draw.uniform(size=9), draw.integers(0, 2, 9).astype(float), np.full(9, 0.5)
        whole = update_memories(memories, perplexity, direction, targets, noise, Q)
        for at in range(9):
            row = slice(at, at + 1)
            alone = update_memories(memories[row].copy(), perplexity[row], direction, targets[row], noise[row], Q)
            for part in ("vectors", "perplexities", "gains", "residuals"):
                assert_array_equal(getattr(whole, part)[row], getattr(alone, part))

    @given(batches(), st.randoms(use_true_random=False))
    def test_order_of_rows_does_not_matter(
        self, batch: tuple[Floats, Floats, Floats, Floats, Floats], random: "np.random.Generator"
    ) -> None:
        memories, perplexity, direction, targets, noise = batch
        order = list(range(len(memories)))
        random.shuffle(order)
        straight = update_memories(memories, perplexity, direction, targets, noise, Q)
        shuffled = update_memories(memories[order], perplexity[order], direction, targets[order], noise[order], Q)

        assert_array_equal(shuffled.vectors, straight.vectors[order])
        assert_array_equal(shuffled.perplexities, straight.perplexities[order])

    @given(batches())
    def test_before_it_is_normalised_the_inner_product_follows_eq_16_and_the_rest_stays(
        self, batch: tuple[Floats, Floats, Floats, Floats, Floats]
    ) -> None:
        memories, perplexity, direction, targets, noise = batch
        memories = normalise_directions(memories)
        update = update_memories(memories, perplexity, direction, targets, noise, Q)
        along = direction / np.linalg.norm(direction)
        gain = perplexity / (perplexity + noise)
        products = (1 - gain) * (memories @ along) + gain * targets
        moved = memories - np.outer(memories @ along, along) + np.outer(products, along)

        assert_allclose(update.vectors, normalise_directions(moved), atol=1e-5)

    @given(batches())
    def test_normalised_memories_have_unit_length(
        self, batch: tuple[Floats, Floats, Floats, Floats, Floats]
    ) -> None:
        update = update_memories(*batch, Q)

        assert_allclose(np.linalg.norm(update.vectors.astype(np.float64), axis=1), 1.0, atol=1e-6)

    @given(batches())
    def test_the_length_of_the_question_does_not_matter(
        self, batch: tuple[Floats, Floats, Floats, Floats, Floats]
    ) -> None:
        memories, perplexity, direction, targets, noise = batch
        short = update_memories(memories, perplexity, direction, targets, noise, Q)
        long = update_memories(memories, perplexity, direction * 8.0, targets, noise, Q)

        assert_allclose(long.vectors, short.vectors, atol=1e-6)

    @given(batches())
    def test_inputs_are_not_changed(self, batch: tuple[Floats, Floats, Floats, Floats, Floats]) -> None:
        copies = [part.copy() for part in batch]
        update_memories(*batch, Q)
        for part, copy in zip(batch, copies, strict=True):
            assert_array_equal(part, copy)


class TestRefusals:
    @pytest.mark.parametrize(("memory", "question"), [([[0.0, 0.0]], [1.0, 0.0]), ([[1.0, 0.0]], [0.0, 0.0])])
    def test_a_vector_without_direction(self, memory: list[list[float]], question: list[float]) -> None:
        with pytest.raises(ValueError, match="direction"):
            update_memories(
                np.array(memory), build_array(1.0), np.array(question), build_array(1.0), build_array(0.5), Q
            )

    def test_shapes_that_do_not_agree(self) -> None:
        with pytest.raises(ValueError, match=r"\(n, d\)"):
            update_memories(np.ones((1, 2)), build_array(1.0), np.ones(3), build_array(1.0), build_array(0.5), Q)
        with pytest.raises(ValueError, match=r"\(n,\)"):
            update_memories(np.ones((2, 2)), build_array(1.0), np.ones(2), build_array(1.0), build_array(0.5), Q)
