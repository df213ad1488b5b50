"""Reranking features, held against sums written out one by one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.ranking.complementarity import (
    COMPLEMENTARITY_FEATURES,
    PAIR_FEATURES,
    POOL_SIZE,
    CandidatePool,
    EntityIncidence,
    GapSimilarities,
    QuestionWords,
    build_pool,
    compute_complementarity,
    compute_evidence_probabilities,
    find_best_partner,
    select_pool,
)


def unit(draw: np.random.Generator, count: int) -> np.ndarray:
    vectors = draw.normal(size=(count, 5))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


class Corpus:
    """Candidates of a made-up question: what each names, is titled after and says, and where vectors point."""

    def __init__(self, seed: int, count: int, entities: int = 6, terms: int = 4) -> None:
        draw = np.random.default_rng(seed)
        self.named = draw.random((count, entities)) < 0.4
        self.titled = self.named & (draw.random((count, entities)) < 0.3)
        self.passages = draw.integers(1, 40, size=entities)
        self.asked = draw.random(entities) < 0.3
        self.said = draw.random((count, terms)) < 0.5
        self.weight = draw.uniform(0.1, 3.0, size=terms)
        self.question = unit(draw, 1)[0]
        self.keys, self.sentences = unit(draw, count), unit(draw, count)
        self.scores = draw.normal(scale=3.0, size=count)
        self.ids = draw.permutation(count).astype(np.int64)

    def pool(self) -> CandidatePool:
        places = select_pool(self.ids, self.scores)
        best = self.sentences[places]
        return build_pool(
            places,
            EntityIncidence(1 / np.log2(1.0 + self.passages), self.asked, self.named, self.titled),
            QuestionWords(self.weight, self.said),
            GapSimilarities(self.keys @ self.question, best @ self.question, best @ self.keys.T),
        )

    def link(self, i: int, j: int) -> dict[str, float]:
        """What j adds to i, one sum after the other."""
        if i == j:
            return dict.fromkeys(PAIR_FEATURES, 0.0)
        every = range(len(self.passages))
        rarity = [1 / math.log2(1 + count) for count in self.passages.tolist()]
        both = [e for e in every if self.named[i, e] and self.named[j, e]]
        asked = sum(rarity[e] for e in every if self.asked[e])
        sided = sum(rarity[e] for e in every if self.asked[e] and self.named[j, e] and not self.named[i, e])
        unsaid = sum(w for w, mine, has in zip(self.weight, self.said[i], self.said[j], strict=True) if has > mine)
        q, s, k = self.question, self.sentences[i], self.keys[j]
        gap, joined = q - (q @ s) * s, q + s
        return {
            "named": float(any(self.titled[j, e] and self.named[i, e] for e in every)),
            "names": float(any(self.titled[i, e] and self.named[j, e] for e in every)),
            "shared": max((rarity[e] for e in both), default=0.0),
            "shared_new": max((rarity[e] for e in both if not self.asked[e]), default=0.0),
            "sided": sided / asked if asked else 0.0,
            "unsaid": float(unsaid / self.weight.sum()),
            "gap": float(gap @ k / np.linalg.norm(gap)),
            "joined": float(joined @ k / np.linalg.norm(joined)),
        }


@given(seed=st.integers(0, 10_000), count=st.integers(1, 9))
def test_every_link_is_what_it_says(seed: int, count: int) -> None:
    corpus = Corpus(seed, count)
    made = corpus.pool()
    assert made.links.shape == (min(POOL_SIZE, count), count, len(PAIR_FEATURES))
    for at, i in enumerate(made.places.tolist()):
        for j in range(count):
            found = dict(zip(PAIR_FEATURES, made.links[at, j].tolist(), strict=True))
            assert found == pytest.approx(corpus.link(i, j), abs=1e-9)


@given(seed=st.integers(0, 10_000), count=st.integers(1, 9))
def test_a_feature_is_the_most_that_a_believed_member_makes_of_a_link(seed: int, count: int) -> None:
    corpus = Corpus(seed, count)
    made, believed = corpus.pool(), compute_evidence_probabilities(corpus.scores)
    features = compute_complementarity(made, believed)
    assert features.shape == (count, len(COMPLEMENTARITY_FEATURES))
    for j in range(count):
        links = [(believed[i], corpus.link(i, j)) for i in made.places.tolist()]
        expected = {name: max(p * link[name] for p, link in links) for name in PAIR_FEATURES}
        expected["standing"] = believed[j]
        assert dict(zip(COMPLEMENTARITY_FEATURES, features[j].tolist(), strict=True)) == pytest.approx(
            expected, abs=1e-9
        )


@given(seed=st.integers(0, 10_000), count=st.integers(1, 12))
def test_reranking_features_are_independent_of_candidate_order(seed: int, count: int) -> None:
    corpus = Corpus(seed, count)
    made, believed = corpus.pool(), compute_evidence_probabilities(corpus.scores)
    order = np.random.default_rng(seed).permutation(count)
    again = made.reorder(order)
    np.testing.assert_array_equal(order[again.places], made.places)
    np.testing.assert_array_equal(
        compute_complementarity(again, believed[order]), compute_complementarity(made, believed)[order]
    )
    weights = np.linspace(-1, 2, len(PAIR_FEATURES))
    np.testing.assert_array_equal(
        find_best_partner(again, believed[order], weights), find_best_partner(made, believed, weights)[order]
    )


def test_the_fifth_has_even_odds() -> None:
    scores = np.array([9.0, -3.0, 2.0, 1.0, 5.0, 4.0, -800.0])
    found = compute_evidence_probabilities(scores)
    assert found[3] == 0.5  # four come before it
    assert found[0] == pytest.approx(1 / (1 + math.exp(-8.0)))
    assert found[-1] == pytest.approx(0.0)
    assert np.all(np.diff(found[np.argsort(scores)]) > 0)
    assert compute_evidence_probabilities(np.array([3.0, 1.0])).tolist() == pytest.approx(
        [1 / (1 + math.exp(-2.0)), 0.5]
    )
    assert len(compute_evidence_probabilities(np.zeros(0))) == 0


def test_members_are_the_best_equal_ones_in_id_order() -> None:
    ids = np.array([7, 3, 9, 1, 5], dtype=np.int64)
    assert select_pool(ids, np.array([1.0, 2.0, 2.0, 2.0, 0.0])).tolist() == [3, 1, 2, 0]
    assert select_pool(ids[:0], np.zeros(0)).tolist() == []


def test_passage_completes_the_likelier_linked_member() -> None:
    links = np.zeros((2, 3, len(PAIR_FEATURES)))
    links[0, 2, 0], links[1, 2, 0] = 1.0, 0.5
    links[1, 0, 1] = 1.0
    made = CandidatePool(np.array([0, 1]), links)
    weights = np.zeros(len(PAIR_FEATURES))
    weights[0], weights[1] = 2.0, -1.0
    assert find_best_partner(made, np.array([0.9, 0.8, 0.1]), weights).tolist() == [-1, -1, 0]
    # the likelier one, though it adds less
    assert find_best_partner(made, np.array([0.3, 0.8, 0.1]), weights).tolist() == [-1, -1, 1]
