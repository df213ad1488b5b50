"""The passages of several rounds in one order."""

from hypothesis import given
from hypothesis import strategies as st

from engram.wings.sessions.core.pool_ranking import BEST_PLACES, OWN_PLACES, order

OWN_RANKING = [(1, 9.0), (2, 8.0), (3, 7.0), (4, 6.0), (5, 5.0), (6, 4.0)]


def test_a_later_query_takes_no_place_by_its_score() -> None:
    assert order(OWN_RANKING, [[(7, 30.0)], [(8, 20.0)]])[:BEST_PLACES] == [1, 2, 3, 4, 5]


def test_the_first_places_are_the_own_questions() -> None:
    later = [[(passage, 30.0 + passage)] for passage in (11, 12, 13, 14)]
    assert order(OWN_RANKING, later, telling={11, 12, 13, 14})[:BEST_PLACES] == [1, 2, 3, 14, 13]


def test_a_passage_that_binds_keeps_its_place() -> None:
    assert order(OWN_RANKING, [[(7, 9.0)]], binding={5}, telling={7})[:BEST_PLACES] == [1, 2, 3, 5, 7]
    assert order(OWN_RANKING, [[(7, 9.0)]], binding={4, 5}, telling={7})[:BEST_PLACES] == [1, 2, 3, 4, 5]


def test_free_places_are_filled() -> None:
    assert order(OWN_RANKING[:2], [[(7, 0.5)]]) == [1, 2, 7]
    assert order([], [[(7, 0.5)], [(8, 0.7)]]) == [8, 7]


scored = st.lists(st.tuples(st.integers(1, 30), st.floats(-9, 9)), max_size=9, unique_by=lambda pair: pair[0]).map(
    lambda pairs: sorted(pairs, key=lambda pair: -pair[1])
)


@given(scored, st.lists(scored, max_size=3))
def test_each_passage_stands_once_and_the_kept_stay(
    own: list[tuple[int, float]], later: list[list[tuple[int, float]]]
) -> None:
    found = order(own, later)
    assert sorted(found) == sorted({passage for some in (own, *later) for passage, _ in some})
    assert found[: min(OWN_PLACES, len(own))] == [passage for passage, _ in own[:OWN_PLACES]]


def test_a_passage_that_tells_what_was_asked_takes_a_place_whatever_its_score() -> None:
    assert order(OWN_RANKING, [[(7, -9.0)]], telling={7})[:BEST_PLACES] == [1, 2, 3, 4, 7]
    assert order(OWN_RANKING, [[(7, -9.0)], [(8, 20.0)]], telling={7})[:BEST_PLACES] == [1, 2, 3, 4, 7]
    assert order(OWN_RANKING, [[(7, -9.0)]], binding={4, 5}, telling={7})[:BEST_PLACES] == [1, 2, 3, 4, 5]
    assert order(OWN_RANKING, [[(8, 5.0), (7, -9.0)]], telling={7})[:BEST_PLACES] == [1, 2, 3, 4, 5]


@given(scored, st.lists(scored, max_size=3), st.sets(st.integers(1, 30)), st.sets(st.integers(1, 30)))
def test_the_first_querys_best_give_way_only_to_what_tells(
    own: list[tuple[int, float]],
    later: list[list[tuple[int, float]]],
    binding: set[int],
    telling: set[int],
) -> None:
    """At most as many of the own first five leave as telling passages come, and none that binds."""
    best = [passage for passage, _ in own[:BEST_PLACES]]
    first = order(own, later, binding, telling)[:BEST_PLACES]
    left = [passage for passage in best if passage not in first]
    came = [passage for passage in first if passage not in best and passage in telling]
    assert len(left) <= len(came)
    assert not binding & set(left)
    assert len(left) <= BEST_PLACES - OWN_PLACES
    if not telling:
        assert first[: len(best)] == best
