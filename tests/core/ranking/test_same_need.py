"""Same need: probabilities by how near a collection's own questions come, whatever its encoder and its subject."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from engram.core.ranking import same_need
from engram.core.ranking.neighbour_vote import UNTAUGHT
from engram.core.ranking.question_contrasts import CONTRASTS, measure_contrasts
from engram.core.ranking.same_need import JudgedPairs, QuestionSpread, QuestionUnits, Signals
from engram.core.ranking.weight_beliefs import sigmoid

Vectors = NDArray[np.float64]
DIMENSION = 48
NO_CONTRASTS = np.zeros((0, len(CONTRASTS)), dtype=np.bool_)
UNLEARNED = measure_contrasts(NO_CONTRASTS, NO_CONTRASTS)
UNITS = QuestionUnits(np.zeros(DIMENSION), 0.0, 0.1)


def signal(nearness: list[float], words: list[float], *contrasts: str) -> Signals:
    """Signals of pairs that all have these contrasts."""
    flags = np.array([[name in contrasts for name in CONTRASTS]] * len(nearness), dtype=np.bool_)
    return Signals(np.array(nearness), np.array(words), flags.reshape(-1, len(CONTRASTS)))


NO_OTHERS = signal([], [])


def draw_vectors(count: int, seed: int, common: float = 0.0) -> Vectors:
    """Unit vectors in all directions, with a share of their length in a common one."""
    vectors = np.random.default_rng(seed).normal(size=(count, DIMENSION))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return squeeze(vectors, common)


def squeeze(vectors: Vectors, common: float) -> Vectors:
    """Make all vectors alike: the cosine c of two becomes common + (1 - common) c."""
    return np.column_stack([np.sqrt(1 - common) * vectors, np.full(len(vectors), np.sqrt(common))])


def pair(nearness: float, words: float, *contrasts: str) -> Signals:
    return signal([nearness], [words], *contrasts)


def compute_probability(signals: Signals, others: Signals = NO_OTHERS) -> float:
    return float(sigmoid(same_need.compute_log_odds(signals, others, UNLEARNED))[0])


def test_the_probability_is_that_of_bayes() -> None:
    others = signal([4.0], [0.2])

    def gauss(distance: float, width: float) -> float:
        return float(np.exp(-(distance**2) / (2 * width**2)) / (width * np.sqrt(2 * np.pi)))

    same = 0.97 / 12
    imagined = gauss(5 - 3, 1.5) * 2 * gauss(0.3, 0.15) * 0.7
    own = gauss(5 - 4, 0.8) * (gauss(0.3 - 0.2, 0.08) + gauss(0.3 + 0.2, 0.08)) * 0.95
    other = (20 * imagined + own) / 21
    # No contrast in figure, names, name, negation, time: each counts by (1 - share of same) / (1 - share of other).
    beside = (0.85 / 0.85) * (0.85 / 0.7) * (0.7 / 0.7) * (0.9 / 0.88) * (0.995 / 0.95)
    expected = 0.1 * same * beside / (0.1 * same * beside + 0.9 * other)
    assert compute_probability(pair(5.0, 0.3), others) == pytest.approx(expected)


def test_near_questions_in_other_words_and_equal_words_have_the_same_need() -> None:
    assert compute_probability(pair(9.0, 0.1)) > 0.95
    assert compute_probability(pair(4.0, 0.9)) > 0.95
    assert compute_probability(pair(3.0, 0.1)) < 0.05


def test_other_numbers_make_it_another_need() -> None:
    assert compute_probability(pair(5.0, 0.4)) > 5 * compute_probability(pair(5.0, 0.4, "figures"))


def test_what_is_less_near_than_others_are_is_no_surer() -> None:
    assert compute_probability(pair(-4.0, 0.1)) == compute_probability(pair(3.0, 0.1))


def test_a_collection_whose_different_questions_come_near_is_surer_of_less() -> None:
    dense = signal([7.0] * 50, [0.5] * 50)

    assert compute_probability(pair(7.0, 0.5)) > 0.9
    assert compute_probability(pair(7.0, 0.5), dense) < 0.02


@pytest.mark.parametrize("contrast", ["figures", "names", "negation", "time"])
def test_contrasts_speak_against_the_same_need(contrast: str) -> None:
    assert compute_probability(pair(6.0, 0.4, contrast)) < compute_probability(pair(6.0, 0.4))


@given(st.floats(3, 30), st.floats(0, 1), st.integers(0, 60), st.integers(0, 99))
def test_probabilities_stay_in_range(nearness: float, words: float, count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    flags = random.uniform(size=(count, len(CONTRASTS))) < 0.3
    others = Signals(random.normal(3, 1, count), random.uniform(0, 0.5, count), flags)

    assert 0.0 <= compute_probability(pair(nearness, words), others) <= 1.0


def measure_units(passages: NDArray[np.float64], questions: NDArray[np.float64]) -> QuestionUnits:
    return same_need.measure_units(same_need.measure_passages(passages), questions)


def test_identical_questions_certainly_have_the_same_need() -> None:
    spread = QuestionSpread(UNITS, NO_OTHERS, UNLEARNED, UNTAUGHT)
    compared = spread.compare([7], pair(0.0, 0.0), np.array([True]))
    needs = compared.count_votes({7: {1}})

    assert compared.compute_probabilities() == {7: 1.0}
    assert (needs[7, 1].probability, needs[7, 1].supporters, needs[7, 1].others) == (1.0, 1, 0)


def test_of_a_passage_that_does_not_support_it_a_question_speaks_for_itself() -> None:
    spread = QuestionSpread(UNITS, NO_OTHERS, UNLEARNED, UNTAUGHT)
    compared = spread.compare([7, 8], signal([9.0, 8.0], [0.9, 0.8]), np.array([False, False]))
    needs = compared.count_votes({7: {1}})

    assert needs.keys() == {(7, None), (7, 1), (8, None)}
    assert needs[8, None].probability == compared.compute_probabilities()[8]
    assert needs[8, None].supporters == 0


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


def judge(evidence: list[set[int]], pairs: dict[tuple[int, int], float]) -> JudgedPairs:
    """Judged questions, and how near some come to each other; every pair contrasts in its figures."""
    rows, neighbours = (np.array([key[side] for key in pairs], dtype=np.intp) for side in (0, 1))
    return JudgedPairs(evidence, rows, neighbours, signal([*pairs.values()], [0.5] * len(pairs), "figures"))


def test_others_are_the_nearest_questions_with_other_evidence() -> None:
    judged = judge([{1, 9}, {2, 9}, {3}], {(0, 1): 8.0, (0, 2): 5.0, (1, 0): 8.0, (1, 2): 4.0, (2, 0): 5.0})
    spread = same_need.measure_spread(UNITS, judged)

    assert spread.others.nearness.tolist() == [5.0, 4.0, 5.0]
    assert spread.others.contrasts[:, same_need.FIGURES].all()
    assert spread.shares.pairs == (2, 3)
    assert spread.shares.same[0] == pytest.approx((20 * 0.03 + 2) / 22)
    assert spread.weights.questions == 3
    assert spread.evidence_count == pytest.approx((20 * 5 + 2 + 2) / 22)


def test_questions_without_evidence_take_no_part() -> None:
    judged = judge([set(), {1}, {2}], {(0, 1): 8.0, (1, 0): 8.0, (1, 2): 5.0})

    assert same_need.measure_spread(UNITS, judged).others.nearness.tolist() == [5.0]
    nothing = same_need.measure_spread(UNITS, judge([], {}))
    assert (len(nothing.others.nearness), nothing.weights.questions) == (0, 0)


def test_words_are_compared_by_their_rarity() -> None:
    assert same_need.compare_words({"a": 3.0, "b": 4.0}, {"a": 3.0, "c": 4.0}) == pytest.approx(9 / 25)
    assert same_need.compare_words({"a": 1.0}, {"a": 1.0}) == 1.0
    assert same_need.compare_words({}, {"a": 1.0}) == 0.0


def test_words_of_two_languages_say_nothing() -> None:
    others = signal([3.0], [0.05])

    assert compute_probability(pair(6.0, 0.0), others) < compute_probability(pair(6.0, np.nan), others) < 1.0
    compared = QuestionSpread(UNITS, others, UNLEARNED, UNTAUGHT).compare([7], pair(6.0, np.nan), np.array([False]))
    assert compared.count_votes({})[7, None].words == 0.0


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
