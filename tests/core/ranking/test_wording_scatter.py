"""Scatter of wordings: directions that tell wordings of one need apart count less in the vote."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engram.core.ranking import question_units, same_need
from engram.core.ranking.neighbour_vote import NEIGHBOURS
from engram.core.ranking.question_contrasts import CONTRASTS
from engram.core.ranking.question_pairs import Signals
from engram.core.ranking.question_priors import PRIOR_DIFFERENCES
from engram.core.ranking.question_units import QuestionUnits
from engram.core.ranking.same_need import ComparedQuestions, NearPairs, QuestionSpread
from engram.core.ranking.wording_scatter import RANK, WordingDifferences, WordingScatter

Vectors = NDArray[np.float64]
DIMENSION = RANK + 1
"""One direction is left that does not count by itself."""
CENTRE = np.full(DIMENSION, 0.05)
UNITS = QuestionUnits(CENTRE, 0.1, 0.2)
NO_PAIRS = np.zeros((0, 2), dtype=np.intp)


def scale(vectors: Vectors) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def draw_wordings(needs: int, wordings: int, seed: int, dimension: int = DIMENSION, noise: float = 0.4) -> Vectors:
    """Unit vectors of questions, the wordings of a need one after the other; they differ in four directions."""
    means = np.random.default_rng(7).normal(size=(needs, dimension))
    random = np.random.default_rng(seed)
    apart = random.normal(size=(needs * wordings, dimension)) * np.where(np.arange(dimension) < 4, 3.0, noise)
    return scale(np.repeat(means, wordings, axis=0) + apart)


def pair_wordings(needs: int, wordings: int) -> NDArray[np.intp]:
    """Each wording with each other one of its need, both ways."""
    need = np.repeat(np.arange(needs), wordings)
    one, other = np.nonzero(np.equal.outer(need, need) & ~np.eye(len(need), dtype=np.bool_))
    return np.column_stack([one, other])


def compute_cosines(vectors: Vectors, differences: Vectors, squared: float) -> Vectors:
    """The formula of the module's docstring as it stands, for all pairs of vectors less the centre."""
    inverse = np.linalg.inv(differences.T @ differences + PRIOR_DIFFERENCES * squared * np.eye(vectors.shape[1]))
    products = vectors @ inverse @ vectors.T
    sizes = np.sqrt(np.diag(products))
    return np.asarray(products / sizes / sizes[:, None])


def compute_nearness(scatter: WordingScatter, units: QuestionUnits, vectors: Vectors, asked: Vectors) -> Vectors:
    """Nearness of each question that is asked to each judged one, (m, n)."""
    placed, own = scatter.place(units.centre, vectors), scatter.place(units.centre, asked)
    return np.array(
        [scatter.standardise(units, vectors @ asked[at], own.select([at]), placed) for at in range(len(asked))]
    )


def test_the_cosine_is_that_of_the_formula() -> None:
    vectors, pairs = draw_wordings(12, 3, 1), pair_wordings(12, 3)
    apart = vectors - CENTRE
    differences = apart[pairs[:, 0]] - apart[pairs[:, 1]]
    scatter = WordingDifferences(apart, pairs).learn_scatter(np.arange(36))

    cosines = compute_cosines(apart, differences, float((differences**2).sum() / len(pairs)))
    upper = np.triu_indices(36, 1)
    plain = compute_cosines(apart, np.zeros((0, DIMENSION)), 1.0)[upper]
    mean = 0.1 + np.arctanh(cosines[upper]).mean() - np.arctanh(plain).mean()
    deviation = 0.2 * np.arctanh(cosines[upper]).std() / np.arctanh(plain).std()
    nearness = compute_nearness(scatter, UNITS, vectors, vectors)[upper]
    assert nearness == pytest.approx((np.arctanh(cosines[upper]) - mean) / deviation, abs=0.02)


def test_a_question_is_left_out_with_its_differences() -> None:
    vectors, pairs = draw_wordings(12, 3, 1), pair_wordings(12, 3)
    apart = vectors - CENTRE
    differences = apart[pairs[:, 0]] - apart[pairs[:, 1]]
    judged = WordingDifferences(apart, pairs)
    scatter = judged.learn_scatter(np.arange(36))
    rows, neighbours = pair_wordings(1, 36).T

    measured = judged.measure_left_out(scatter, UNITS, rows, neighbours)

    squared = float((differences**2).sum() / len(pairs))
    units = scatter.fit(UNITS)
    for row in (0, 17):
        others = differences[(pairs != row).all(axis=1)]
        cosines = compute_cosines(apart, others, squared)[row, neighbours[rows == row]]
        expected = (np.arctanh(cosines) - units.mean) / units.deviation
        assert measured[rows == row] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("pairs", [NO_PAIRS, np.array([[0, 0]])], ids=["no pair", "no difference"])
def test_without_differences_nearness_is_plain(pairs: NDArray[np.intp]) -> None:
    vectors = draw_wordings(5, 2, 2)
    judged = WordingDifferences(vectors - CENTRE, pairs)
    scatter = judged.learn_scatter(np.arange(10))
    rows, neighbours = pair_wordings(1, 10).T
    cosines, along = (vectors[rows] * vectors[neighbours]).sum(axis=1), vectors @ CENTRE
    plain = UNITS.standardise(cosines, along[rows], along[neighbours])

    assert scatter.directions.shape == (DIMENSION, 0)
    assert judged.measure_left_out(scatter, UNITS, rows, neighbours) == pytest.approx(plain)
    assert compute_nearness(scatter, UNITS, vectors, vectors)[neighbours, rows] == pytest.approx(plain)


def test_wordings_of_new_needs_come_nearer() -> None:
    judged, pairs = draw_wordings(40, 5, 3), pair_wordings(40, 5)
    units = question_units.measure_units(question_units.measure_passages(judged), judged)
    scatter = WordingDifferences(judged - units.centre, pairs).learn_scatter(np.arange(200))
    plain = WordingScatter(np.zeros((DIMENSION, 0), dtype=np.float16))
    means = np.random.default_rng(11).normal(size=(60, DIMENSION))
    random = np.random.default_rng(12)
    wide = np.where(np.arange(DIMENSION) < 4, 3.0, 0.4)
    one, other = (scale(means + random.normal(size=means.shape) * wide) for _ in range(2))

    def count_right(used: WordingScatter) -> int:
        return int((compute_nearness(used, units, one, other).argmax(axis=1) == np.arange(60)).sum())

    assert count_right(scatter) >= count_right(plain) + 10


VECTORS, PAIRS = draw_wordings(6, 3, 4), pair_wordings(6, 3)
ASKED = draw_wordings(3, 1, 5)
LEARNED = WordingDifferences(VECTORS - CENTRE, PAIRS).learn_scatter(np.arange(18))


@settings(max_examples=20)
@given(st.permutations(range(18)), st.permutations(range(len(PAIRS))))
def test_the_order_of_questions_does_not_matter(order: list[int], pair_order: list[int]) -> None:
    place = np.argsort(order)
    learned = WordingDifferences(VECTORS[order] - CENTRE, place[PAIRS][pair_order]).learn_scatter(np.arange(18))

    nearness = compute_nearness(learned, UNITS, VECTORS, ASKED)
    assert nearness == pytest.approx(compute_nearness(LEARNED, UNITS, VECTORS, ASKED), abs=0.01)


def compare_nearest(
    units: QuestionUnits, asked: Vectors, judged: Vectors, own: NDArray[np.intp] | None
) -> tuple[NDArray[np.intp], Signals]:
    """The nearest judged questions of each question, (m, k), and signals of all pairs; ``own`` are left out."""
    cosines = asked @ judged.T
    ranked = cosines.copy()
    if own is not None:
        ranked[np.arange(len(own)), own] = -2.0
    nearest = np.argsort(-ranked, axis=1)[:, :NEIGHBOURS]
    rows = np.repeat(np.arange(len(asked)), NEIGHBOURS)
    nearness = units.standardise(
        cosines[rows, nearest.ravel()], asked[rows] @ units.centre, judged[nearest.ravel()] @ units.centre
    )
    flags = np.zeros((len(rows), len(CONTRASTS)), dtype=np.bool_)
    return nearest, Signals(nearness, np.full(len(rows), 0.2), flags)


def learn(judged: Vectors, evidence: list[set[int]]) -> QuestionSpread:
    units = question_units.measure_units(question_units.measure_passages(judged), judged)
    places = np.arange(len(judged))
    nearest, signals = compare_nearest(units, judged, judged, places)
    rows = np.repeat(places, NEIGHBOURS)
    shares = dict.fromkeys(rows.tolist(), dict.fromkeys(set().union(*evidence), 0.5))
    return same_need.measure_spread(units, NearPairs(evidence, rows, nearest.ravel(), signals, judged, shares))


@pytest.mark.parametrize("wordings", [2, 3, 5])
def test_votes_are_calibrated_on_new_questions(wordings: int) -> None:
    dimension, needs, noise = 96, 50, 1.7
    judged = draw_wordings(needs, wordings, 8, dimension, noise)
    evidence = [{need} for need in range(needs) for _ in range(wordings)]
    spread = learn(judged, evidence)
    asked = draw_wordings(needs, 6, 9, dimension, noise)
    nearest, signals = compare_nearest(spread.units, asked, judged, None)
    placed, own = spread.place(judged), spread.place(asked)
    said, seen = [], []
    for at, near in enumerate(nearest):
        nearness = spread.scatter.standardise(
            spread.units, judged[near] @ asked[at], own.select([at]), placed.select(near.tolist())
        )
        pairs = signals.select(np.arange(at * NEIGHBOURS, (at + 1) * NEIGHBOURS))
        ids = near.tolist()
        identical = np.zeros(NEIGHBOURS, dtype=np.bool_)
        compared = ComparedQuestions(spread, ids, pairs, nearness, identical, dict.fromkeys(range(needs), 0.5))
        needs_of = compared.count_votes({question: evidence[question] for question in ids})
        (_, best), vote = max(
            ((key, need) for key, need in needs_of.items() if key[1] is not None),
            key=lambda pair: pair[1].probability,
        )
        said.append(vote.probability)
        seen.append(best == at // 6)

    assert 0.6 < np.mean(seen) < 0.95
    assert np.mean(said) == pytest.approx(np.mean(seen), abs=0.06)


def test_questions_without_evidence_teach_no_scatter() -> None:
    judged = draw_wordings(10, 3, 10)
    hidden = learn(judged, [set()] * 30)

    assert hidden.scatter.directions.shape[1] == 0
    assert learn(judged, [{need} for need in range(10) for _ in range(3)]).scatter.directions.shape[1] > 0
