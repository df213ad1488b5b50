"""Draws of exploration: as often as said, as many as allowed, repeatable, and rather of what is unknown."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.wings.experiments.core.exploration import draw, entropy, explores, room, weights

SEEDS = [entropy("query", number) for number in range(3_000)]


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
def test_the_share_of_queries_that_explore_is_met(share: float) -> None:
    seen = sum(explores(share, seed) for seed in SEEDS)
    assert abs(seen - share * len(SEEDS)) <= 4 * np.sqrt(len(SEEDS) * share * (1 - share))


def test_exploring_units_keep_exploring_at_a_larger_share() -> None:
    assert all(explores(0.5, seed) for seed in SEEDS if explores(0.1, seed))


@given(st.lists(st.integers(0, 1_000), max_size=50), st.integers(0, 12), st.integers(0, 2**256 - 1))
def test_a_draw_takes_no_more_than_it_may_and_nothing_twice(evidence: list[int], slots: int, seed: int) -> None:
    drawn = draw(weights(np.array(evidence, dtype=np.int64)), slots, seed)
    assert len(drawn) == min(slots, len(evidence))
    assert drawn == sorted(set(drawn))
    assert set(drawn) <= set(range(len(evidence)))


def test_the_same_entropy_gives_the_same_draw_and_another_gives_others() -> None:
    chances = weights(np.zeros(50, dtype=np.int64))
    assert draw(chances, 3, 5) == draw(chances, 3, 5)
    assert len({tuple(draw(chances, 3, seed)) for seed in SEEDS[:50]}) > 25


def test_entropy_follows_from_every_part() -> None:
    assert entropy(7, 1, "user", "question") == entropy(7, 1, "user", "question")
    others = [entropy(8, 1, "user", "question"), entropy(7, 2, "user", "question"), entropy(7, 1, "userquestion")]
    assert entropy(7, 1, "user", "question") not in others
    assert 0 <= entropy("x") < 2**256


def test_weights_are_inverse_to_what_is_known_and_to_the_rank() -> None:
    found = weights(np.array([0, 0, 3, 1], dtype=np.int64))
    assert found == pytest.approx([1 / (1 * 1), 1 / (1 * 2), 1 / (4 * 3), 1 / (2 * 4)])


def test_passages_with_less_evidence_are_drawn_more_often() -> None:
    """Of two neighbours the lower, untouched one comes out first, though the upper one is likelier by its rank."""
    chances = weights(np.array([9, 0], dtype=np.int64))
    lower = sum(draw(chances, 1, seed) == [1] for seed in SEEDS)
    share = (1 / 2) / (1 / 10 + 1 / 2)
    assert abs(lower - share * len(SEEDS)) < 4 * np.sqrt(len(SEEDS) * share * (1 - share))


@given(st.integers(0, 20), st.integers(1, 20), st.integers(0, 20))
def test_exploration_room_stays_below_the_top(slots: int, top_k: int, shown: int) -> None:
    taken = room(slots, top_k, shown)
    assert 0 <= taken <= slots
    assert taken == 0 or (taken < top_k and shown >= top_k)


def test_room() -> None:
    assert room(2, 5, 5) == 2
    assert room(10, 5, 5) == 4
    assert room(1, 1, 1) == 0
    assert room(1, 5, 4) == 0


def test_invalid_share_or_evidence_is_refused() -> None:
    with pytest.raises(ValueError, match="share"):
        explores(1.1, 0)
    with pytest.raises(ValueError, match="evidence"):
        weights(np.array([-1], dtype=np.int64))
