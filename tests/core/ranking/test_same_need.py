"""Same need: probabilities by how near a collection's own questions come, whatever its encoder and its subject."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.ranking import question_pairs, same_need
from engram.core.ranking.question_contrasts import CONTRASTS, measure_contrasts
from engram.core.ranking.question_pairs import FIGURES, Signals
from engram.core.ranking.question_units import QuestionUnits
from engram.core.ranking.same_need import ComparedQuestions, NearPairs, QuestionSpread
from engram.core.ranking.weight_beliefs import sigmoid
from engram.core.ranking.wording_scatter import WordingScatter

DIMENSION = 48
NO_CONTRASTS = np.zeros((0, len(CONTRASTS)), dtype=np.bool_)
UNLEARNED = measure_contrasts(NO_CONTRASTS, NO_CONTRASTS)
UNITS = QuestionUnits(np.zeros(DIMENSION), 0.0, 0.1)
NO_SCATTER = WordingScatter(np.zeros((DIMENSION, 0), dtype=np.float16))


def signal(nearness: list[float], words: list[float], *contrasts: str) -> Signals:
    """Signals of pairs that all have these contrasts."""
    flags = np.array([[name in contrasts for name in CONTRASTS]] * len(nearness), dtype=np.bool_)
    return Signals(np.array(nearness), np.array(words), flags.reshape(-1, len(CONTRASTS)))


NO_OTHERS = signal([], [])


def pair(nearness: float, words: float, *contrasts: str) -> Signals:
    return signal([nearness], [words], *contrasts)


def compute_probability(signals: Signals, others: Signals = NO_OTHERS) -> float:
    return float(sigmoid(question_pairs.compute_log_odds(signals, others, UNLEARNED))[0])


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


@pytest.mark.parametrize("others", [[], [12.0] * 40], ids=["unjudged", "very near others"])
def test_what_is_less_near_is_no_surer(others: list[float]) -> None:
    observed = signal(others, [0.1] * len(others))
    probabilities = [
        compute_probability(pair(nearness, 0.1), observed) for nearness in (-4.0, 1.5, 3.0, 5.0, 7.0, 9.0, 11.0)
    ]

    assert probabilities == sorted(probabilities)
    assert probabilities[1] < 0.05


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


def test_identical_questions_certainly_have_the_same_need() -> None:
    spread = QuestionSpread(UNITS, NO_OTHERS, UNLEARNED, NO_SCATTER)
    compared = ComparedQuestions(spread, [7], pair(0.0, 0.0), np.zeros(1), np.array([True]), {1: 0.5})
    needs = compared.count_votes({7: {1}})

    assert compared.compute_probabilities().tolist() == [1.0]
    assert (needs[7, 1].probability, needs[7, 1].supporters, needs[7, 1].others) == (1.0, 1, 0)


def test_of_a_passage_that_does_not_support_it_a_question_speaks_for_itself() -> None:
    spread = QuestionSpread(UNITS, NO_OTHERS, UNLEARNED, NO_SCATTER)
    compared = ComparedQuestions(
        spread, [7, 8], signal([9.0, 8.0], [0.9, 0.8]), np.array([9.0, 8.0]), np.array([False, False]), {1: 0.5}
    )
    needs = compared.count_votes({7: {1}})

    assert needs.keys() == {(7, None), (7, 1), (8, None)}
    assert needs[8, None].probability == compared.compute_probabilities()[1]
    assert needs[8, None].supporters == 0


def judge(evidence: list[set[int]], pairs: dict[tuple[int, int], float]) -> NearPairs:
    """Judged questions, and how near some come to each other; every pair contrasts in its figures."""
    rows, neighbours = (np.array([key[side] for key in pairs], dtype=np.intp) for side in (0, 1))
    signals = signal([*pairs.values()], [0.5] * len(pairs), "figures")
    shares = dict.fromkeys(range(len(evidence)), dict.fromkeys(set().union(*evidence), 0.5))
    return NearPairs(evidence, rows, neighbours, signals, np.eye(DIMENSION)[: len(evidence)], shares)


def test_others_are_the_nearest_questions_with_other_evidence() -> None:
    judged = judge([{1, 9}, {2, 9}, {3}], {(0, 1): 8.0, (0, 2): 5.0, (1, 0): 8.0, (1, 2): 4.0, (2, 0): 5.0})
    spread = same_need.measure_spread(UNITS, judged)

    assert spread.other_pairs.nearness.tolist() == [5.0, 4.0, 5.0]
    assert spread.other_pairs.contrasts[:, FIGURES].all()
    assert spread.shares.same[0] == pytest.approx((20 * 0.03 + 2) / 22)
    assert spread.weights.questions == 3
    assert spread.evidence_count == pytest.approx((20 * 5 + 2 + 2) / 22)


def test_a_question_that_is_left_out_is_compared_with_no_pair_of_its_own() -> None:
    others = signal([7.0, 7.0], [0.5, 0.5])
    odds = question_pairs.compute_log_odds(pair(7.0, 0.5), others, UNLEARNED)
    left_out = question_pairs.compute_log_odds(pair(7.0, 0.5), others, UNLEARNED, np.array([[False, False]]))

    assert left_out == question_pairs.compute_log_odds(pair(7.0, 0.5), NO_OTHERS, UNLEARNED)
    assert left_out > odds


def test_questions_without_evidence_take_no_part() -> None:
    judged = judge([set(), {1}, {2}], {(0, 1): 8.0, (1, 0): 8.0, (1, 2): 5.0})

    assert same_need.measure_spread(UNITS, judged).other_pairs.nearness.tolist() == [5.0]
    nothing = same_need.measure_spread(UNITS, judge([], {}))
    assert (len(nothing.other_pairs.nearness), nothing.weights.questions) == (0, 0)


def ask(judged: int, nearness: dict[tuple[int, int], float]) -> NearPairs:
    """Asked questions and the judged ones near to each, each of which has evidence of its own."""
    rows = np.array([judged + asked for asked, _ in nearness], dtype=np.intp)
    neighbours = np.array([neighbour for _, neighbour in nearness], dtype=np.intp)
    evidence = [frozenset({one}) for one in range(judged)] + [frozenset[int]()] * (len(set(rows.tolist())))
    shares = dict.fromkeys(rows.tolist(), dict.fromkeys(range(judged), 0.5))
    vectors = np.eye(DIMENSION)[np.arange(len(evidence)) % DIMENSION]
    signals = signal([*nearness.values()], [0.5] * len(rows), "figures")
    return NearPairs(evidence, rows, neighbours, signals, vectors, shares)


def vote_at(spread: QuestionSpread) -> float:
    """Probability of a vote by a judged question at 6 units, beside another one at 1.5."""
    nearness = np.array([6.0, 1.5])
    compared = ComparedQuestions(
        spread,
        [7, 8],
        signal([6.0, 1.5], [0.5, 0.5], "figures"),
        nearness,
        np.array([False, False]),
        {1: 0.5, 2: 0.5},
    )
    return compared.count_votes({7: {1}, 8: {2}})[7, 1].probability


@pytest.mark.parametrize(("judged_count", "least", "most"), [(20, 0.2, 1.0), (3, 0.0, 0.3)])
def test_a_need_that_is_asked_again_is_recalled_though_each_was_judged_once(
    judged_count: int, least: float, most: float
) -> None:
    judged = judge(
        [{one} for one in range(judged_count)],
        {(one, (one + step) % judged_count): 3.5 - step for one in range(judged_count) for step in (1, 2)},
    )
    other, again = (
        ask(
            judged_count,
            {
                (asked, (asked + step) % judged_count): near
                for asked in range(60)
                for step, near in enumerate(nearness)
            },
        )
        for nearness in ((2.5, 1.5), (6.0, 1.5))
    )
    alone, with_other, with_again = (
        vote_at(same_need.measure_spread(UNITS, judged, asked)) for asked in (None, other, again)
    )

    assert with_other == pytest.approx(alone, abs=0.1)
    assert least < with_again - alone < most


@pytest.mark.parametrize(
    "judged", [judge([{0}], {}), judge([{0}, {0}], {(0, 1): 3.0, (1, 0): 3.0})], ids=["one", "two"]
)
def test_asked_questions_tell_nothing_where_no_judged_ones_have_other_evidence(judged: NearPairs) -> None:
    alone, with_asked = (
        same_need.measure_spread(UNITS, judged, asked)
        for asked in (None, ask(1, {(one, 0): 3.0 for one in range(60)}))
    )
    assert with_asked.weights.weights.tolist() == alone.weights.weights.tolist()


def test_words_are_compared_by_their_rarity() -> None:
    assert question_pairs.compare_words({"a": 3.0, "b": 4.0}, {"a": 3.0, "c": 4.0}) == pytest.approx(9 / 25)
    assert question_pairs.compare_words({"a": 1.0}, {"a": 1.0}) == 1.0
    assert question_pairs.compare_words({}, {"a": 1.0}) == 0.0


def test_words_of_two_languages_say_nothing() -> None:
    others = signal([3.0], [0.05])

    assert compute_probability(pair(6.0, 0.0), others) < compute_probability(pair(6.0, np.nan), others) < 1.0
    spread = QuestionSpread(UNITS, others, UNLEARNED, NO_SCATTER)
    compared = ComparedQuestions(spread, [7], pair(6.0, np.nan), np.array([6.0]), np.array([False]), {})
    assert compared.count_votes({})[7, None].words == 0.0


def test_units_of_the_question_s_own_make_a_near_pair_surer() -> None:
    foreign = pair(6.0, np.nan)
    own = replace(foreign, cross_language=np.array([True]))

    assert compute_probability(foreign) < 0.5 < compute_probability(own)
    assert compute_probability(replace(own, nearness=np.array([2.5]))) < 0.05
