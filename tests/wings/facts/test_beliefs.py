"""What is believed of facts, in visible arithmetic: R 0.5 for, 1.0 against, Q 0.001, from 0.5 at perplexity 1."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.wings.facts.core.beliefs import LEAST_BELIEF, FactStatement, Group, Kind, replay
from engram.wings.facts.core.claims import ALWAYS, NEVER, Claim, Days

FIRST_DAY = datetime(2026, 5, 1, tzinfo=UTC)
Q = 0.001


def day(year: int) -> int:
    return date(year, 1, 1).toordinal()


def word(sequence: int, fact: int, kind: Kind = "source", who: str = "", **more: Any) -> FactStatement:
    at = FIRST_DAY + timedelta(seconds=sequence)
    return FactStatement(
        sequence=sequence,
        fact_id=fact,
        kind=kind,
        who=who or f"source {sequence}",
        day=at.date().isoformat(),
        at=at,
        positive=0.5,
        negative=1.0,
        process_noise=Q,
        **more,
    )


def replay_beliefs(
    claims: Sequence[Claim], words: Sequence[FactStatement], *, one: bool = True
) -> dict[int, float]:
    facts, _ = replay([Group(claims, words, one)])
    return {fact: state.belief for fact, state in facts.items()}


def test_a_source_moves_a_fact_by_the_gain() -> None:
    (state,), (move,) = (list(part) for part in _replay_group([Claim(1, 7)], [word(1, 1)]))
    gain = 1 / (1 + 0.5)
    assert move.gain == gain
    assert state.belief == pytest.approx(0.5 + gain * 0.5)
    assert state.perplexity == pytest.approx((1 - gain) * 1 + Q)


def _replay_group(claims: Sequence[Claim], words: Sequence[FactStatement]) -> tuple[Any, Any]:
    facts, moves = replay([Group(claims, words, True)])
    return facts.values(), moves


def test_the_same_source_says_nothing_new() -> None:
    once = replay_beliefs([Claim(1, 7)], [word(1, 1, who="a")])
    assert replay_beliefs([Claim(1, 7)], [word(1, 1, who="a"), word(2, 1, who="a")]) == once
    assert replay_beliefs([Claim(1, 7)], [word(1, 1, who="a"), word(2, 1, who="b")])[1] > once[1]


def test_two_objects_of_a_functional_predicate_compete_and_the_order_does_not_matter() -> None:
    claims = [Claim(1, 7), Claim(2, 8)]
    first = replay_beliefs(claims, [word(1, 1), word(2, 2)])
    assert first[1] == pytest.approx(first[2], abs=1e-3)
    assert first[1] < replay_beliefs(claims[:1], [word(1, 1)])[1]
    apart = replay_beliefs(claims, [word(1, 1), word(2, 2)], one=False)
    assert apart[1] == apart[2] == replay_beliefs(claims[:1], [word(1, 1)])[1]


def test_a_verdict_decides_between_two_sources() -> None:
    claims = [Claim(1, 7), Claim(2, 8)]
    after = replay_beliefs(claims, [word(1, 1), word(2, 2), word(3, 2, "confirm", "ana")])
    assert after[2] > 0.7 > 0.5 > after[1]
    against = replay_beliefs(claims, [word(1, 1), word(2, 2), word(3, 1, "contradict", "ana")])
    assert against[1] < 0.5 < against[2]


def test_a_judge_closes_no_more_than_its_share_of_a_day() -> None:
    words = [word(1, 1), *(word(n, 1, "contradict", "ana", share=0.2) for n in range(2, 9))]
    start = replay_beliefs([Claim(1, 7)], words[:1])[1]
    assert replay_beliefs([Claim(1, 7)], words)[1] == pytest.approx(0.8 * start)


def test_later_fact_ends_its_predecessor() -> None:
    claims = [Claim(1, 7, day(2005)), Claim(2, 8, day(2009)), Claim(3, 9, day(2013))]
    facts, _ = replay([Group(claims, [word(3, 1), word(1, 2), word(2, 3)], True)])
    assert [facts[n].held_until for n in (1, 2, 3)] == [day(2009), day(2013), NEVER]
    assert [facts[n].superseded_by for n in (1, 2, 3)] == [2, 3, None]
    assert facts[1].closed_at == FIRST_DAY + timedelta(seconds=3)  # it was over when it came
    assert facts[2].closed_at == FIRST_DAY + timedelta(seconds=2)
    assert min(state.belief for state in facts.values()) > 0.8


def test_doubted_fact_does_not_end_its_predecessor() -> None:
    claims = [Claim(1, 7, day(2005)), Claim(2, 8, day(2009))]
    words = [word(1, 1), word(2, 2), *(word(n, 2, "contradict", f"judge {n}") for n in (3, 4, 5))]
    facts, _ = replay([Group(claims, words, True)])
    assert facts[2].belief < LEAST_BELIEF
    assert facts[1].closed_at is None
    assert facts[1].held_until == NEVER


def test_undated_fact_ends_when_its_dated_twin_ended() -> None:
    claims = [Claim(1, 7, day(2005)), Claim(2, 8, day(2009)), Claim(3, 7), Claim(4, 9)]
    facts, _ = replay([Group(claims, [word(n, n) for n in (1, 2, 3, 4)], True)])
    assert (facts[3].held_until, facts[3].superseded_by) == (day(2009), 2)
    assert facts[3].closed_at == FIRST_DAY + timedelta(seconds=3)
    assert facts[4].closed_at is None


def test_a_word_closes_a_fact_without_taking_from_its_belief() -> None:
    words = [word(1, 1), word(2, 1, "close", "ana", until=day(2010), reason="resigned")]
    facts, _ = replay([Group([Claim(1, 7)], words, False)])
    assert (facts[1].held_until, facts[1].closed_reason) == (day(2010), "resigned")
    assert facts[1].belief == replay_beliefs([Claim(1, 7)], words[:1])[1]


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ((ALWAYS, NEVER), (ALWAYS, NEVER), True),
        ((ALWAYS, NEVER), (day(2009), NEVER), False),  # of which time the first speaks nobody knows
        ((day(2005), NEVER), (day(2009), NEVER), False),  # one follows the other
        ((day(2005), day(2010)), (day(2009), day(2014)), False),  # a handover, told by the year
        ((day(2005), day(2012)), (day(2009), day(2014)), True),
        ((day(2009), day(2010)), (day(2009), day(2010)), True),
        ((day(2005), day(2009)), (day(2009), NEVER), False),
    ],
)
def test_rivals_would_have_to_hold_at_once(one: tuple[int, int], two: tuple[int, int], expected: bool) -> None:
    claims = Claim(1, 7, *one), Claim(2, 8, *two)
    assert claims[0].rivals(claims[1]) is claims[1].rivals(claims[0]) is expected
    assert not Claim(1, 7, *one).rivals(Claim(2, 7, *two))


def test_a_year_agrees_with_a_day_of_it() -> None:
    year, date_ = Days(day(1885), day(1886)), Days(day(1885) + 92, day(1885) + 93)
    assert Claim(1, year).agrees(Claim(2, date_))
    assert not Claim(1, Days(day(1886), day(1887))).agrees(Claim(2, date_))
    both = replay_beliefs([Claim(1, year), Claim(2, date_)], [word(1, 1), word(2, 2)])
    assert both[1] == both[2] > 0.85


KINDS = st.sampled_from(["source", "confirm", "contradict"])
WORDS = st.lists(st.tuples(st.integers(1, 3), KINDS, st.sampled_from("abc")), max_size=12)


@given(WORDS, st.booleans())
def test_beliefs_and_perplexities_stay_in_their_ranges_and_groups_do_not_depend_on_others(
    said: list[tuple[int, Kind, str]], one: bool
) -> None:
    claims = [Claim(n, n % 2, day(2000 + n) if n == 3 else ALWAYS) for n in (1, 2, 3)]
    words = [word(at, fact, kind, who) for at, (fact, kind, who) in enumerate(said, start=1)]
    group = Group(claims, words, one)
    other = Group([Claim(9, 9)], [word(50, 9)], False)
    alone, moves = replay([group])
    beside, _ = replay([other, group])
    for fact, state in alone.items():
        assert 0 <= state.belief <= 1
        assert Q <= state.perplexity <= 1
        assert beside[fact] == state
    assert all(0 <= move.gain < 1 for move in moves)


def replay_periods(
    claims: Sequence[Claim], words: Sequence[FactStatement], *, one: bool = False
) -> dict[int, tuple[int, str | None]]:
    facts, _ = replay([Group(claims, words, one)])
    return {fact: (state.held_until, state.closed_reason) for fact, state in facts.items()}


def test_another_source_tells_when_a_fact_ended() -> None:
    claims = [Claim(1, 7, day(2012)), Claim(2, 7, ALWAYS, day(2018)), Claim(3, 7), Claim(4, 8)]
    words = [word(place, place) for place in (1, 2, 3, 4)]

    assert replay_periods(claims, words) == {
        1: (day(2018), "ended"),
        2: (day(2018), None),
        3: (day(2018), "ended"),
        4: (NEVER, None),
    }


def test_fact_that_began_again_still_holds() -> None:
    claims = [Claim(1, 7, ALWAYS, day(2010)), Claim(2, 7, day(2015)), Claim(3, 7)]

    assert replay_periods(claims, [word(place, place) for place in (1, 2, 3)]) == {
        1: (day(2010), None),
        2: (NEVER, None),
        3: (NEVER, None),
    }


def test_doubted_end_does_not_end_a_fact() -> None:
    claims = [Claim(1, 7, day(2012)), Claim(2, 7, ALWAYS, day(2018))]
    words = [word(1, 1), word(2, 2), *(word(place, 2, "contradict", f"judge {place}") for place in range(3, 9))]

    assert replay_periods(claims, words)[1] == (NEVER, None)


def test_dated_fact_supersedes_an_undated_one() -> None:
    claims = [Claim(1, 7), Claim(2, 8, day(2019))]

    assert replay_periods(claims, [word(1, 1), word(2, 2)], one=True) == {
        1: (day(2019), "superseded"),
        2: (NEVER, None),
    }
    assert replay_periods(claims, [word(1, 2), word(2, 1)], one=True) == {1: (NEVER, None), 2: (NEVER, None)}
    assert replay_periods(claims, [word(1, 1), word(2, 2)]) == {1: (NEVER, None), 2: (NEVER, None)}
