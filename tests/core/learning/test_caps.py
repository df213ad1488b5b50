"""Caps per judge, memory and day: what a judge closes of the distance, and whose word stands."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.learning.caps import (
    JUDGES,
    UNTOUCHED,
    GainBudget,
    JudgeStatements,
    add_statement,
    compute_allowed_gain,
    compute_largest_gain,
    compute_largest_gains,
    find_weight_limit,
    is_contested,
    select_within_limit,
)
from engram.core.learning.judge_standing import NEWCOMERS

SHARES = st.floats(0.0, 1.0, allow_nan=False)
GAINS = st.floats(0.001, 0.999, allow_nan=False)


class TestGainLimit:
    @given(share=SHARES, gains=st.lists(GAINS, max_size=60))
    def test_a_day_of_verdicts_stays_within_the_share(self, share: float, gains: list[float]) -> None:
        budget = UNTOUCHED.start_day("2026-05-01")
        for gain in gains:
            budget = budget.spend(
                "judge", min(gain, compute_largest_gain(budget.find_remaining_share("judge"), share))
            )
        assert 1.0 - budget.find_remaining_share("judge") <= share + 1e-9

    @given(gain=GAINS, share=SHARES)
    def test_one_verdict_within_the_share_is_not_held_back(self, gain: float, share: float) -> None:
        assert (min(gain, compute_largest_gain(1.0, share)) == gain) == (gain <= compute_largest_gain(1.0, share))
        assert math.isclose(compute_largest_gain(1.0, share), share, abs_tol=1e-9)

    def test_share_of_one_does_not_limit_gains(self) -> None:
        assert compute_largest_gain(1e-300, 1.0) == 1.0

    def test_exhausted_gain_budget_allows_no_gain(self) -> None:
        assert compute_largest_gain(0.1, 0.9) == 0.0
        assert compute_largest_gain(0.05, 0.9) == 0.0

    @pytest.mark.parametrize(("left", "share"), [(0.0, 0.5), (1.1, 0.5), (0.5, -0.1), (0.5, 1.1), (math.nan, 0.5)])
    def test_shares_out_of_range_are_refused(self, left: float, share: float) -> None:
        with pytest.raises(ValueError, match="must lie in"):
            compute_largest_gain(left, share)
        with pytest.raises(ValueError, match="must lie in"):
            compute_largest_gains(np.array([1.0, left]), np.array([0.5, share]))

    @given(st.lists(st.tuples(st.floats(1e-9, 1.0), SHARES), min_size=1, max_size=20))
    def test_many_are_to_the_bit_what_each_is_alone(self, several: list[tuple[float, float]]) -> None:
        left, shares = np.array(several).T
        assert compute_largest_gains(left, shares).tolist() == [compute_largest_gain(*one) for one in several]


class TestAllowedGain:
    @pytest.mark.parametrize(
        ("said", "share", "contested_share", "most"),
        [
            ((), 0.8, 0.1, 0.6),  # of 0.5 that is left, 0.2 may be left: 1 - 0.2 / 0.5
            ((("b", 0),), 0.8, 0.1, 0.0),  # 0.9 would have to be left
            ((("b", 0),), 0.8, 0.6, 0.2),  # 1 - 0.4 / 0.5
            ((("b", 0),), 0.8, 0.9, 0.6),  # the lower one holds
            ((("b", 1),), 0.8, 0.1, 0.6),
        ],
    )
    def test_the_contested_share_holds_for_what_goes_against_others(
        self, said: JudgeStatements, share: float, contested_share: float, most: float
    ) -> None:
        budget = GainBudget("2026-05-01", (("a", 0.5),))
        allowed = compute_allowed_gain(budget, said, "a", 1, share=share, contested_share=contested_share)
        assert allowed == pytest.approx(most)


class TestDayTotals:
    def test_judges_do_not_count_against_each_other(self) -> None:
        budget = UNTOUCHED.start_day("2026-05-01").spend("a", 0.5).spend("b", 0.25).spend("a", 0.5)
        assert (
            budget.find_remaining_share("a"),
            budget.find_remaining_share("b"),
            budget.find_remaining_share("c"),
        ) == (0.25, 0.75, 1.0)

    def test_a_new_day_begins_anew(self) -> None:
        budget = UNTOUCHED.start_day("2026-05-01").spend("a", 0.5)
        assert budget.start_day("2026-05-02") == GainBudget("2026-05-02")

    def test_a_verdict_of_an_earlier_day_counts_to_the_last(self) -> None:
        budget = UNTOUCHED.start_day("2026-05-02").spend("a", 0.5)
        assert budget.start_day("2026-05-01") is budget


class TestContestedVerdicts:
    @pytest.mark.parametrize(
        ("said", "target", "against"),
        [
            ((), 1, False),
            ((("me", 1),), 0, False),
            ((("a", 1),), 1, False),
            ((("a", 1),), 0, True),
            # Others who say the same outnumber or even out who says otherwise; who spoke first breaks the tie.
            ((("a", 1), ("me", 0)), 0, True),
            ((("me", 0), ("a", 1)), 0, False),
            ((("b", 0), ("a", 1), ("c", 1)), 0, False),
            ((("a", 1), ("c", 1), ("b", 0)), 0, True),
            ((("a", 1), ("b", 0), ("c", 0)), 0, False),
            ((("a", 1), ("c", 1)), 0, True),
            ((("me", 1), ("a", 1)), 0, False),  # who spoke first may change its mind
        ],
    )
    def test_it_goes_by_other_judges_last_words(self, said: JudgeStatements, target: int, against: bool) -> None:
        assert is_contested(said, "me", target) is against

    def test_a_newcomer_does_not_count_on_its_own_side(self) -> None:
        said = (("a", 1), ("b", 0))
        assert is_contested(said, NEWCOMERS, 0)
        assert not is_contested(said, "me", 0)

    @given(words=st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 1)), max_size=30))
    def test_of_two_opposite_verdicts_of_a_newcomer_at_most_one_is_contested(
        self, words: list[tuple[str, int]]
    ) -> None:
        said: JudgeStatements = ()
        for judge, target in words:
            said = add_statement(said, judge, target)
        assert not (is_contested(said, "newcomer", 0) and is_contested(said, "newcomer", 1))

    def test_the_last_word_counts_at_the_place_of_the_first(self) -> None:
        said = add_statement(add_statement(add_statement((), "a", 1), "b", 0), "a", 0)
        assert said == (("a", 0), ("b", 0))

    def test_words_of_a_bounded_number_of_judges_are_stored(self) -> None:
        said: JudgeStatements = ()
        for number in range(JUDGES + 5):
            said = add_statement(said, f"judge {number}", 1)
        assert len(said) == JUDGES
        assert add_statement(said, "judge 0", 0)[0] == ("judge 0", 0)


class TestCountedComparisons:
    def test_comparisons_count_up_to_the_daily_cap(self) -> None:
        assert select_within_limit([2, 2, 2]) == [True, True, False]
        assert select_within_limit([2, 2], before=1) == [True, False]
        assert select_within_limit([0]) == [False]

    def test_contested_comparisons_do_not_count(self) -> None:
        caps = [
            find_weight_limit(2, contested=False),
            find_weight_limit(2, contested=True),
            find_weight_limit(None, contested=True),
        ]
        assert select_within_limit([*caps, find_weight_limit(None, contested=False)]) == [True, False, False, True]

    def test_each_goes_by_the_cap_of_its_time(self) -> None:
        assert select_within_limit([1, 1, 3, None, 3, 3]) == [True, False, True, True, False, False]
