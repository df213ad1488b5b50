"""The passage ranking: the features of every candidate."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from engram.core.ranking.complementarity import (
    COMPLEMENTARITY_FEATURES,
    PAIR_FEATURES,
    CandidatePool,
    compute_evidence_probabilities,
)
from engram.core.ranking.passage_scores import (
    BASE_FEATURES,
    FEATURE_HOPS,
    HOP_FEATURES,
    NO_TITLE_MATCH_FEATURES,
    PASSAGE_FEATURES,
    PLAIN_FEATURES,
    HopReach,
    add_complementarity,
    gather_values,
    has_title_match,
    passage_features,
    select_best,
)


def test_the_best_come_first_and_equal_scores_in_id_order() -> None:
    assert select_best({5: 0.5, 2: 0.5, 9: 0.75, 1: 0.25}, 3) == [(9, 0.75), (2, 0.5), (5, 0.5)]


@given(st.dictionaries(st.integers(0, 99), st.integers(0, 5).map(float)), st.integers(0, 20))
def test_ranking_does_not_depend_on_the_order_of_scores(scores: dict[int, float], limit: int) -> None:
    backwards = dict(reversed(scores.items()))

    assert select_best(backwards, limit) == select_best(scores, limit)
    assert len(select_best(scores, limit)) == min(limit, len(scores))


def reach(*sentences: tuple[int, float, float], titled: dict[int, float] | None = None) -> HopReach:
    """A hop that reached sentences (passage, semantic, score), best first."""
    columns = np.array(sentences, dtype=np.float64).reshape(-1, 3)
    return HopReach(columns[:, 0].astype(np.int64), columns[:, 1], columns[:, 2], titled or {})


def compute(
    similarities: dict[int, float], hops: Sequence[HopReach], *plain: dict[int, float]
) -> NDArray[np.float64]:
    """The base features of the passages with these similarities, in id order; ``plain``: further plain ones."""
    passages = np.array(sorted(similarities), dtype=np.int64)
    values = np.zeros((len(passages), len(PLAIN_FEATURES)))
    for column, of_passage in enumerate((similarities, *plain)):
        values[:, column] = gather_values(passages, of_passage)
    return passage_features(passages, values, hops)


def table(
    similarities: dict[int, float],
    *hops: HopReach,
    lexical: dict[int, float] | None = None,
    timely: dict[int, float] | None = None,
) -> dict[int, dict[str, float]]:
    """Passage -> feature -> value, those that are 0 left out."""
    features = compute(similarities, hops, lexical or {}, timely or {})
    assert features.shape == (len(similarities), len(BASE_FEATURES))
    return {
        passage: {name: value for name, value in zip(BASE_FEATURES, row, strict=True) if value}
        for passage, row in zip(sorted(similarities), features.tolist(), strict=True)
    }


def test_every_feature_has_one_column() -> None:
    assert len(BASE_FEATURES) == len(PLAIN_FEATURES) + FEATURE_HOPS * len(HOP_FEATURES) + len(
        NO_TITLE_MATCH_FEATURES
    )
    assert len(set(PASSAGE_FEATURES)) == len(PASSAGE_FEATURES)
    assert (*BASE_FEATURES, *COMPLEMENTARITY_FEATURES) == PASSAGE_FEATURES
    assert {f"{name}_untitled" for name in NO_TITLE_MATCH_FEATURES} == set(
        BASE_FEATURES[-len(NO_TITLE_MATCH_FEATURES) :]
    )
    assert PASSAGE_FEATURES[len(PLAIN_FEATURES) : len(PLAIN_FEATURES) + len(HOP_FEATURES)] == tuple(
        f"{name}_1" for name in HOP_FEATURES
    )


def test_reranking_features_follow_the_base_ranking() -> None:
    first = np.random.default_rng(1).normal(size=(6, len(BASE_FEATURES)))
    weights = np.linspace(-1, 1, len(BASE_FEATURES))
    links = np.random.default_rng(2).normal(size=(2, 6, len(PAIR_FEATURES)))
    features = add_complementarity(first, CandidatePool(np.array([4, 1]), links), weights)
    believed = compute_evidence_probabilities(first @ weights)
    np.testing.assert_array_equal(features[:, : len(BASE_FEATURES)], first)
    np.testing.assert_array_equal(features[:, -1], believed)
    expected = np.maximum(believed[4] * links[0], believed[1] * links[1])
    np.testing.assert_allclose(features[:, len(BASE_FEATURES) : -1], expected)
    nothing = add_complementarity(first, None, weights)
    assert nothing.shape == (6, len(PASSAGE_FEATURES))
    assert not nothing[:, len(BASE_FEATURES) :].any()


def test_a_hop_counts_with_the_best_sentence_of_each_passage() -> None:
    # 30 has two sentences: the second one is likest to the question, the first one scores best.
    hop = reach((30, 0.5, 0.4), (10, 0.9, 0.2), (30, 0.7, 0.1), titled={10: 0.5, 20: 1.0})

    found = table({20: -0.3, 10: 0.8, 30: 0.6}, hop, lexical={30: 2.5}, timely={20: 0.25})

    assert found == {
        10: {
            "similarity": 0.8,
            "evidence_1": 0.9,
            "rank_1": 1 / 2,
            "share_1": 0.5,
            "titled_1": 0.5,
            "titled_similarity_1": 0.4,
        },
        20: {"similarity": -0.3, "timely": 0.25, "titled_1": 1.0},  # a negative likeness adds nothing to a title
        30: {"similarity": 0.6, "lexical": 2.5, "evidence_1": 0.7, "rank_1": 1.0, "share_1": 1.0},
    }


def test_each_hop_has_columns_of_its_own_and_later_ones_share_the_last() -> None:
    hops = [
        reach((1, 0.1, 0.5), titled={3: 0.5}),
        reach((2, 0.2, 0.5), titled={3: 0.6}),
        reach((2, 0.3, 0.5), (1, 0.5, 0.1), titled={3: 0.9}),
        reach((1, 0.4, 0.5), titled={3: 0.8}),
    ]
    assert len(hops) > FEATURE_HOPS

    found = table({1: 0.0, 2: 0.0, 3: 0.0}, *hops)

    assert found[1] == {"evidence_1": 0.1, "rank_1": 1.0, "share_1": 1.0} | {
        "evidence_3": 0.5,
        "rank_3": 1.0,
        "share_3": 1.0,
    }
    assert found[2] == {"evidence_2": 0.2, "rank_2": 1.0, "share_2": 1.0} | {
        "evidence_3": 0.3,
        "rank_3": 1.0,
        "share_3": 1.0,
    }
    assert found[3] == {"titled_1": 0.5, "titled_2": 0.6, "titled_3": 0.9}


@pytest.mark.parametrize("titled", [None, {2: 0.1}])
def test_likeness_counts_once_more_where_nothing_is_titled_at_the_first_hop(
    titled: dict[int, float] | None,
) -> None:
    later = reach((2, 0.5, 0.5), titled={1: 1.0})
    found = table({1: 0.6, 2: 0.5}, reach((1, 0.9, 0.5), titled=titled), later, lexical={2: 1.5})

    again = {name: value for name, value in found[1].items() if name.endswith("_untitled")}
    other = {name: value for name, value in found[2].items() if name.endswith("_untitled")}
    if titled:
        assert again == other == {}
    else:
        assert again == {"similarity_untitled": 0.6, "evidence_1_untitled": 0.9, "rank_1_untitled": 1.0}
        assert other == {"similarity_untitled": 0.5, "lexical_untitled": 1.5}


@pytest.mark.parametrize("titled", [{}, {2: 0.5}])
def test_any_candidate_tells_whether_one_is_titled_after_the_question(titled: dict[int, float]) -> None:
    features = compute({1: 0.9, 2: 0.4, 3: -0.1}, [reach((1, 0.5, 1.0), titled=titled)])
    assert {has_title_match(row) for row in features} == {bool(titled)}


def test_a_title_of_a_passage_that_is_not_ranked_is_none() -> None:
    found = table({1: 0.6}, reach((1, 0.9, 0.5), titled={2: 1.0}))

    assert found[1]["similarity_untitled"] == 0.6


def test_unranked_passage_of_a_hop_counts_for_ranks_only() -> None:
    hop = reach((9, 0.9, 0.8), (0, 0.9, 0.8), (5, 0.5, 0.4), (7, 0.4, 0.2))

    found = table({5: 0.1, 6: 0.2, 7: 0.3}, hop)

    assert {name: found[5][name] for name in ("evidence_1", "rank_1", "share_1")} == {
        "evidence_1": 0.5,
        "rank_1": 1 / 3,
        "share_1": 0.5,
    }
    assert not [name for name in found[6] if name.endswith("_1")]  # no hop reached it
    assert found[7]["rank_1"] == 1 / 4


def test_a_hop_whose_sentences_score_nothing_has_no_shares() -> None:
    found = table({1: 0.1}, reach((1, -0.5, 0.0)), reach())

    assert found[1] == {"similarity": 0.1, "rank_1": 1.0, "similarity_untitled": 0.1, "rank_1_untitled": 1.0}


def test_no_passages_give_no_features() -> None:
    features = compute({}, [reach((1, 0.5, 0.5), titled={1: 1.0})], {1: 0.5})

    assert features.shape == (0, len(BASE_FEATURES))


cosines = st.floats(-1.0, 1.0)
shares = st.floats(0.0, 1.0)


@given(
    st.dictionaries(st.integers(0, 12), cosines, max_size=8),
    st.dictionaries(st.integers(0, 12), shares),
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.integers(0, 12), cosines, shares), max_size=9),
            st.dictionaries(st.integers(0, 12), shares),
        ),
        max_size=5,
    ),
    st.randoms(use_true_random=False),
)
def test_features_do_not_depend_on_the_order_of_what_is_given(
    similarities: dict[int, float],
    scattered: dict[int, float],
    rounds: list[tuple[list[tuple[int, float, float]], dict[int, float]]],
    draw: random.Random,
) -> None:
    hops = [
        reach(*sorted(sentences, key=lambda row: (-row[2], row[0], row[1])), titled=titled)
        for sentences, titled in rounds
    ]

    def shuffle(values: dict[int, float]) -> dict[int, float]:
        return dict(draw.sample(list(values.items()), len(values)))

    features = compute(similarities, hops, scattered, scattered)
    turned = [
        HopReach(hop.passage_ids, hop.semantic, hop.scores, shuffle(dict(hop.title_activation))) for hop in hops
    ]

    np.testing.assert_array_equal(compute(similarities, turned, scattered, scattered), features)
    assert np.isfinite(features).all()
