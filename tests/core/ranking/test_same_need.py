"""Same need: probabilities by how near a collection's own questions come, whatever its encoder and its subject."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from engram.core.ranking import same_need
from engram.core.ranking.same_need import QuestionSpread, QuestionUnits, Signals

Vectors = NDArray[np.float64]
DIMENSION = 48
NO_OTHERS = Signals(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.bool_))
UNITS = QuestionUnits(np.zeros(DIMENSION), 0.0, 0.1)


def draw_vectors(count: int, seed: int, common: float = 0.0) -> Vectors:
    """Unit vectors in all directions, with a share of their length in a common one."""
    vectors = np.random.default_rng(seed).normal(size=(count, DIMENSION))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return squeeze(vectors, common)


def squeeze(vectors: Vectors, common: float) -> Vectors:
    """Make all vectors alike: the cosine c of two becomes common + (1 - common) c."""
    return np.column_stack([np.sqrt(1 - common) * vectors, np.full(len(vectors), np.sqrt(common))])


def pair(nearness: float, words: float, *, figures_differ: bool = False) -> Signals:
    return Signals(np.array([nearness]), np.array([words]), np.array([figures_differ]))


def compute_probability(signals: Signals, others: Signals = NO_OTHERS) -> float:
    return float(QuestionSpread(UNITS, others).compute_same_need(signals)[0])


def test_the_probability_is_that_of_bayes() -> None:
    others = Signals(np.array([4.0]), np.array([0.2]), np.array([False]))

    def gauss(distance: float, width: float) -> float:
        return float(np.exp(-(distance**2) / (2 * width**2)) / (width * np.sqrt(2 * np.pi)))

    same = 0.97 / 12
    imagined = gauss(5 - 3, 1.5) * 2 * gauss(0.3, 0.15) * 0.7
    own = gauss(5 - 4, 0.8) * (gauss(0.3 - 0.2, 0.08) + gauss(0.3 + 0.2, 0.08)) * 0.95
    other = (20 * imagined + own) / 21
    expected = 0.1 * same / (0.1 * same + 0.9 * other)
    assert compute_probability(pair(5.0, 0.3), others) == pytest.approx(expected)


def test_near_questions_in_other_words_and_equal_words_have_the_same_need() -> None:
    assert compute_probability(pair(9.0, 0.1)) > 0.95
    assert compute_probability(pair(4.0, 0.9)) > 0.95
    assert compute_probability(pair(3.0, 0.1)) < 0.05


def test_other_numbers_make_it_another_need() -> None:
    assert compute_probability(pair(5.0, 0.4)) > 5 * compute_probability(pair(5.0, 0.4, figures_differ=True))


def test_what_is_less_near_than_others_are_is_no_surer() -> None:
    assert compute_probability(pair(-4.0, 0.1)) == compute_probability(pair(3.0, 0.1))


def test_a_collection_whose_different_questions_come_near_is_surer_of_less() -> None:
    dense = Signals(np.full(50, 7.0), np.full(50, 0.5), np.zeros(50, dtype=np.bool_))

    assert compute_probability(pair(7.0, 0.5)) > 0.9
    assert compute_probability(pair(7.0, 0.5), dense) < 0.02


@given(st.floats(3, 30), st.floats(0, 1), st.integers(0, 60), st.integers(0, 99))
def test_probabilities_stay_in_range(nearness: float, words: float, count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    others = Signals(random.normal(3, 1, count), random.uniform(0, 0.5, count), random.uniform(size=count) < 0.3)

    assert 0.0 <= compute_probability(pair(nearness, words), others) <= 1.0


def measure_units(passages: NDArray[np.float64], questions: NDArray[np.float64]) -> QuestionUnits:
    return same_need.measure_units(same_need.measure_passages(passages), questions)


def test_identical_questions_certainly_have_the_same_need() -> None:
    (judged,) = QuestionSpread(UNITS, NO_OTHERS).compare(pair(0.0, 0.0), np.array([True]))

    assert (judged.probability, judged.nearness, judged.words, judged.figures_differ) == (1.0, 0.0, 0.0, False)


@pytest.mark.parametrize("common", [0.3, 0.75, 0.95])
def test_squeezing_the_space_changes_no_nearness(common: float) -> None:
    passages, questions = draw_vectors(60, 1), draw_vectors(30, 2)
    asked, past = draw_vectors(8, 3), draw_vectors(8, 4)

    def measure(share: float) -> NDArray[np.float64]:
        units = measure_units(squeeze(passages, share), squeeze(questions, share))
        one, other = squeeze(asked, share), squeeze(past, share)
        return units.standardise((one * other).sum(axis=1), one @ units.centre, other @ units.centre)

    assert measure(common) == pytest.approx(measure(0.0), abs=1e-6)


def test_nearness_is_in_standard_units_of_pairs_of_questions() -> None:
    questions = draw_vectors(400, 5)
    units = measure_units(draw_vectors(400, 6), questions)
    rows, columns = np.triu_indices(len(questions), 1)
    along = questions @ units.centre
    nearness = units.standardise((questions @ questions.T)[rows, columns], along[rows], along[columns])

    # 400 of 410 parts are measured on pairs of questions, the rest on pairs of passages.
    assert (nearness.mean(), nearness.std()) == pytest.approx((0.0, 1.0), abs=0.05)


def test_pairs_of_passages_stand_for_questions_that_nobody_asked() -> None:
    passages = draw_vectors(50, 7, 0.4)
    units = measure_units(passages, np.zeros((0, 0)))

    assert units.mean == pytest.approx(0.0, abs=0.05)
    assert 0.0 < units.deviation < 1.0
    assert measure_units(passages[:1], np.zeros((0, 0))).deviation == 1.0
    with pytest.raises(ValueError, match="there is none"):
        same_need.measure_passages(np.zeros((0, 0)))


def measure_others(evidence: list[set[int]], population: float, *, alike: float = 0.9) -> Signals:
    """Others of questions that come in two groups, near within each."""
    vectors = draw_vectors(len(evidence), 8)
    for at in range(0, len(vectors) - 1, 2):
        vectors[at + 1] = alike * vectors[at] + np.sqrt(1 - alike**2) * vectors[at + 1]
        vectors[at + 1] /= np.linalg.norm(vectors[at + 1])
    units = QuestionUnits(np.zeros(vectors.shape[1]), 0.0, 0.15)
    words = [{f"word{at // 2}": 1.0, f"own{at}": 1.0} for at in range(len(evidence))]
    figures = [frozenset({str(at)}) for at in range(len(evidence))]
    return same_need.measure_spread(units, vectors, evidence, words, figures, population).others


def test_others_are_the_nearest_questions_with_other_evidence() -> None:
    apart = measure_others([{1}, {2}, {3}, {4}], 4)
    shared = measure_others([{1, 9}, {2, 9}, {3}, {4}], 4)

    assert (apart.nearness > 7).all()
    assert apart.words == pytest.approx([0.5] * 4)  # one of two words, of equal weight
    assert apart.figures_differ.all()
    assert (shared.nearness[:2] < 5).all()
    assert shared.words[:2].tolist() == [0.0, 0.0]


def test_questions_without_evidence_take_no_part() -> None:
    assert len(measure_others([set(), {1}, {2}, set()], 4).nearness) == 2
    assert len(measure_others([set(), {1}], 2).nearness) == 0
    assert len(measure_others([], 0).nearness) == 0
    nothing = np.zeros((0, 0))
    assert len(same_need.measure_spread(UNITS, nothing, [], [], [], 0).others.nearness) == 0


def test_in_a_larger_population_others_come_nearer() -> None:
    evidence: list[set[int]] = [{at} for at in range(12)]
    sampled, whole = measure_others(evidence, 1200), measure_others(evidence, 12)

    shift = np.log(100) * whole.nearness.std() * np.sqrt(6) / np.pi
    assert sampled.nearness == pytest.approx(whole.nearness + shift)


def test_words_are_compared_by_their_rarity() -> None:
    assert same_need.compare_words({"a": 3.0, "b": 4.0}, {"a": 3.0, "c": 4.0}) == pytest.approx(9 / 25)
    assert same_need.compare_words({"a": 1.0}, {"a": 1.0}) == 1.0
    assert same_need.compare_words({}, {"a": 1.0}) == 0.0


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ("Who chaired it in 2003?", "Who chaired it in 2005?", True),
        ("from 2001 to 2003", "in 2003", True),
        ("Who chaired it in 2003?", "Who chaired it?", False),
        ("the 1920s, in 5 parts", "5 parts of the 1920s", False),
    ],
)
def test_figures_differ_where_both_name_numbers_and_not_the_same(one: str, other: str, differ: bool) -> None:
    assert same_need.do_figures_differ(same_need.find_figures(one), same_need.find_figures(other)) is differ


def test_words_of_two_languages_say_nothing() -> None:
    others = Signals(np.array([3.0]), np.array([0.05]), np.array([False]))

    assert compute_probability(pair(6.0, 0.0), others) < compute_probability(pair(6.0, np.nan), others) < 1.0
    (need,) = QuestionSpread(UNITS, others).compare(pair(6.0, np.nan), np.array([False]))
    assert need.words == 0.0


def test_units_of_the_question_s_own_make_a_near_pair_surer() -> None:
    foreign = pair(6.0, np.nan)
    own = replace(foreign, cross_language=np.array([True]))

    assert compute_probability(foreign) < 0.5 < compute_probability(own)
    assert compute_probability(replace(own, nearness=np.array([2.5]))) < 0.05


def test_units_of_a_question_in_another_language_are_its_own() -> None:
    units = QuestionUnits(np.zeros(2), 0.0, 1.0)
    angles = np.linspace(1.2, 1.5, 12)
    foreign = np.column_stack([np.cos(angles), np.sin(angles)])
    question = np.array([1.0, 0.0])

    adapted = units.fit_to_other_languages(question, foreign)

    others = np.arctanh(np.cos(angles[1:]))  # the nearest is left out
    assert (adapted.mean, adapted.deviation) == pytest.approx((others.mean(), others.std()))
    assert units.fit_to_other_languages(question, foreign[:10]) is units
