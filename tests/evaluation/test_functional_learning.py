"""Learning which predicates have one object per subject at a time, and what then competes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.wings.facts.core.functional_predicates import OneAtATime
from engram_evaluation.functional_learning import (
    SINGLE_SENTENCE_WEIGHT,
    SLACK_DAYS,
    ObjectPeriod,
    group_competing,
    learn,
    observe_holdings,
)

YEAR = 365
INTERVALS = st.tuples(st.none() | st.integers(0, 5_000), st.none() | st.integers(5_001, 9_000))
HOLDINGS = st.lists(
    st.builds(lambda thing, span: ObjectPeriod(thing, *span), st.sampled_from("abc"), INTERVALS), max_size=12
)


def test_single_source_counts_less_than_two_agreeing_sources() -> None:
    once, twice = ObjectPeriod("lund", source=1), ObjectPeriod("lund", source=2)

    assert observe_holdings([]) == OneAtATime()
    assert observe_holdings([once]) == OneAtATime(single=SINGLE_SENTENCE_WEIGHT)
    assert observe_holdings([once, twice]) == OneAtATime(single=1.0)
    assert observe_holdings([once, ObjectPeriod("oslo", source=1)]) == OneAtATime(several=SINGLE_SENTENCE_WEIGHT)
    assert observe_holdings([once, ObjectPeriod("oslo", source=2)]) == OneAtATime(several=1.0)


def test_learning_adds_up_and_can_be_taken_back() -> None:
    lund, both = [ObjectPeriod("lund")], [ObjectPeriod("lund"), ObjectPeriod("oslo")]
    beliefs = learn([("born in", lund), ("likes", both), ("born in", lund)])

    assert beliefs == {
        "born in": OneAtATime(single=2 * SINGLE_SENTENCE_WEIGHT),
        "likes": OneAtATime(several=SINGLE_SENTENCE_WEIGHT),
    }
    assert beliefs["born in"] - observe_holdings(lund) == observe_holdings(lund)
    with pytest.raises(ValueError, match="taken back"):
        beliefs["likes"] - observe_holdings(lund)


def test_offices_that_follow_each_other_do_not_compete() -> None:
    first, second = ObjectPeriod("krag", 0, 5 * YEAR), ObjectPeriod("lind", 5 * YEAR - 200, 9 * YEAR)

    assert group_competing([first, second]) == []
    assert group_competing([first, ObjectPeriod("lind", 2 * YEAR, 9 * YEAR)]) == [[0, 1]]


def test_the_same_object_does_not_compete_with_itself() -> None:
    assert (
        group_competing([ObjectPeriod("krag", 0, 900), ObjectPeriod("krag", 100, 800), ObjectPeriod("krag")]) == []
    )


def test_an_open_end_meets_all_that_follows() -> None:
    assert group_competing([ObjectPeriod("krag", 0, None), ObjectPeriod("lind", 5 * YEAR, 9 * YEAR)]) == [[0, 1]]
    assert group_competing(
        [ObjectPeriod("krag"), ObjectPeriod("lind", 0, YEAR), ObjectPeriod("holm", 5 * YEAR, None)]
    ) == [[0, 1, 2]]


def test_groups_come_apart_where_nothing_is_shared() -> None:
    early = [ObjectPeriod("a", 0, 4 * YEAR), ObjectPeriod("b", 0, 4 * YEAR)]
    late = [ObjectPeriod("c", 9 * YEAR, 12 * YEAR), ObjectPeriod("d", 9 * YEAR, 12 * YEAR)]

    assert group_competing([late[0], early[0], late[1], early[1]]) == [[1, 3], [0, 2]]


def test_an_interval_has_a_day() -> None:
    with pytest.raises(ValueError, match="ends before"):
        group_competing([ObjectPeriod("krag", 5, 5)])


@given(HOLDINGS)
def test_every_pair_that_shares_enough_days_is_in_one_group(holdings: list[ObjectPeriod]) -> None:
    groups = group_competing(holdings)

    together = {(one, other) for group in groups for one in group for other in group}
    for one, first in enumerate(holdings):
        for other, second in enumerate(holdings):
            starts = max(first.start or -1, second.start or -1)
            ends = min(first.end or 10**6, second.end or 10**6)
            if first.object != second.object and ends - starts > SLACK_DAYS + 1:
                assert (one, other) in together
