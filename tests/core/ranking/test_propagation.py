"""Propagation: the factors of Eq. 4, the scores of Eq. 6 and the means of Eq. 9."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from engram.core.ranking.propagation import (
    ChannelMemories,
    ReachedSentences,
    normalise_l1,
    select_next_entities,
    select_strongest,
    sentence_scores,
    sentence_weights,
)

numbers = st.lists(st.floats(-1e3, 1e3).filter(lambda x: x == 0 or abs(x) > 1e-3), min_size=1, max_size=30)


def candidates(
    semantic: list[float],
    activation: list[float],
    task: tuple[float, float] | None = None,
    time: tuple[float, float] | None = None,
    agreement: float = 0.0,
) -> ReachedSentences:
    """Sentences 1, 2, ... whose channels all have the given (perplexity, similarity); None: no memories."""
    count = len(semantic)
    ids = np.arange(1, count + 1)
    memories = {
        channel: ChannelMemories(*(np.full(count, value) for value in values))
        for channel, values in (("task", task), ("time", time))
        if values is not None
    }
    agreed = np.full(count, agreement)
    return ReachedSentences(ids, ids * 10, np.array(activation), np.array(semantic), agreed, memories)


def test_sentences_join_others_in_id_order() -> None:
    one, other = (
        ReachedSentences(np.array(ids), np.array(ids) * 10, *(np.array(ids) / number for number in (1.0, 2.0, 4.0)))
        for ids in ([2, 7], [5])
    )
    joined = one.join(other)
    assert_array_equal(joined.sentence_ids, [2, 5, 7])
    assert_array_equal(joined.passage_ids, [20, 50, 70])
    assert_array_equal([joined.activation, joined.semantic * 2, joined.agreement * 4], [[2, 5, 7]] * 3)


def test_untouched_memory_has_factor_one() -> None:
    assert_array_equal(ChannelMemories(np.array([1.0, 1.0]), np.array([0.9, -0.9])).factor, [1.0, 1.0])


def test_a_sure_aligned_memory_doubles_and_a_sure_opposed_one_silences() -> None:
    assert_array_equal(ChannelMemories(np.array([0.0, 0.0]), np.array([1.0, -1.0])).factor, [2.0, 0.0])


def test_weight_is_the_product_of_similarity_and_both_factors() -> None:
    rows = candidates([0.5], [1.0], task=(0.2, 0.75), time=(0.5, 0.4))

    assert_allclose(sentence_weights(rows), [0.5 * (1 + 0.8 * 0.75) * (1 + 0.5 * 0.4)])


def test_days_that_agree_add_to_the_weight() -> None:
    rows = candidates([0.5], [1.0], agreement=0.8)

    assert_allclose(sentence_weights(rows), [0.5 * 1.8])
    assert_array_equal(rows.get_memories("time").factor, [1.0])


def test_scores_are_weighted_activations_that_sum_to_one() -> None:
    rows = candidates([0.5, 0.25], [1.0, 2.0])

    assert_allclose(sentence_scores(rows), [0.5 / (0.5 + 0.5), 0.5 / (0.5 + 0.5)])


@given(numbers)
def test_normalised_values_have_absolute_sum_one(values: list[float]) -> None:
    total = float(np.abs(normalise_l1(np.array(values))).sum())

    assert total == (pytest.approx(1.0) if any(values) else 0.0)


def test_zero_vector_normalises_to_zero() -> None:
    assert_array_equal(normalise_l1(np.zeros(3)), np.zeros(3))
    assert len(normalise_l1(np.zeros(0))) == 0


def test_equal_scores_come_in_id_order() -> None:
    scores, ids = np.array([0.1, 0.7, 0.7, 0.7]), np.array([1, 9, 3, 5])

    assert ids[select_strongest(scores, ids, 3)].tolist() == [3, 5, 9]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 10**6)), unique_by=lambda pair: pair[1]), st.integers(0, 9)
)
def test_strongest_does_not_depend_on_the_order_of_rows(pairs: list[tuple[int, int]], limit: int) -> None:
    expected = [key for _, key in sorted(pairs, key=lambda pair: (-pair[0], pair[1]))][:limit]
    scores = np.array([float(score) for score, _ in pairs])
    ids = np.array([key for _, key in pairs], dtype=np.int64)

    assert ids[select_strongest(scores, ids, limit)].tolist() == expected
    assert ids[::-1][select_strongest(scores[::-1], ids[::-1], limit)].tolist() == expected


def test_next_entities_go_by_the_mean_and_not_the_sum() -> None:
    scores = {1: 0.5, 2: 0.2, 3: 0.2, 4: 0.2}
    links = [(1, 100), (2, 200), (3, 200), (4, 200)]

    assert select_next_entities(scores, links, 5) == {100: pytest.approx(0.5), 200: pytest.approx((0.2 * 3) / 3)}
    assert list(select_next_entities(scores, links, 1)) == [100]


def test_next_entities_break_ties_in_id_order_and_drop_what_is_not_positive() -> None:
    scores = {1: 0.5, 2: -0.5, 3: 0.0}
    links = [(1, 30), (1, 10), (1, 20), (2, 40), (3, 50)]

    assert list(select_next_entities(scores, links, 2)) == [10, 20]
    assert set(select_next_entities(scores, links, 9)) == {10, 20, 30}


def test_with_counts_rare_entities_come_first() -> None:
    scores = {1: 0.5, 2: 0.2}
    links = [(1, 10), (1, 20), (2, 30), (2, 20)]

    found = select_next_entities(scores, links, 5, counts={10: 100, 20: 1, 30: 2})

    assert list(found.items()) == [
        (20, pytest.approx((0.5 + 0.2) / 2)),  # named once: its mean stays as it is
        (30, pytest.approx(0.2 / (1 + math.log(2)))),
        (10, pytest.approx(0.5 / (1 + math.log(100)))),
    ]
    assert list(select_next_entities(scores, links, 1, counts={10: 100, 20: 1, 30: 2})) == [20]
    assert list(select_next_entities(scores, links, 1)) == [10]


def test_without_links_counts_lead_nowhere() -> None:
    assert select_next_entities({1: 0.5}, [], 5, counts={}) == {}


@given(
    st.dictionaries(st.integers(0, 20), st.floats(0.01, 1.0), min_size=1, max_size=8),
    st.integers(1, 10**6),
    st.integers(0, 10**6),
)
def test_rarer_of_two_names_never_ranks_later(scores: dict[int, float], count: int, more: int) -> None:
    links = [(sentence, entity) for sentence in scores for entity in (7, 8)]

    found = select_next_entities(scores, links, 2, counts={8: count, 7: count + more})

    assert found[8] >= found[7] > 0
    assert list(found) == ([8, 7] if found[8] > found[7] else [7, 8])


@given(
    st.dictionaries(st.integers(0, 20), st.floats(0.01, 1.0), min_size=1, max_size=8),
    st.sets(st.tuples(st.integers(0, 20), st.integers(0, 6))),
    st.randoms(use_true_random=False),
)
def test_next_entities_do_not_depend_on_the_order_of_links(
    scores: dict[int, float], pairs: set[tuple[int, int]], random: "np.random.Generator"
) -> None:
    links = sorted(pair for pair in pairs if pair[0] in scores)
    shuffled = list(links)
    random.shuffle(shuffled)

    straight = select_next_entities(scores, links, 10)
    assert select_next_entities(scores, shuffled, 10) == pytest.approx(straight)
