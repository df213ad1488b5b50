"""Paths of facts: what the question asks for leads on, and what many share leads nowhere."""

from collections.abc import Iterable

from engram.wings.facts.core import fact_paths
from engram.wings.facts.core.fact_paths import CROWD, STEP, UNASKED_FACTOR, Link, Path, Web, begin, interleave_paths

NO_WORDS: frozenset[int] = frozenset()


def link(id: int, subject: int, object_: int, *asked: int, belief: float = 1.0, closed: bool = False) -> Link:
    return Link(id, subject, object_, belief, closed, frozenset(asked))


def extend(known: Iterable[Path], links: Iterable[Link], starts: frozenset[int], most: int) -> list[Path]:
    return fact_paths.extend(known, Web(links), starts, most)


def test_a_path_is_worth_its_edges_and_what_they_answer() -> None:
    first, second = extend(begin([1]), [link(1, 1, 2, 0, belief=0.5), link(2, 3, 1)], frozenset({1}), 9)
    assert (first.edges, first.end, first.worth) == ((1,), 2, STEP * 0.5)
    assert first.score == first.worth * 1.2
    assert (second.edges, second.end, second.worth) == ((2,), 3, STEP * UNASKED_FACTOR)  # against its direction


def test_path_matching_two_terms_precedes_path_matching_one() -> None:
    links = [link(1, 1, 2, 0), link(2, 2, 3, 1), link(3, 1, 4, 1), link(4, 4, 5)]
    found = extend(extend(begin([1]), links, frozenset({1}), 9), links, frozenset({1}), 9)
    assert [path.edges for path in found] == [(1, 2), (3, 4)]


def test_no_entity_twice_and_nothing_after_an_object_that_is_none() -> None:
    links = [link(1, 1, 2, 0), link(2, 2, 1, 0), link(3, 1, 0, 0)]
    once = extend(begin([1]), links, frozenset({1}), 9)
    assert sorted(path.edges for path in once) == [(1,), (2,), (3,)]
    assert extend(once, links, frozenset({1}), 9) == []


def test_a_crowd_says_little_and_a_closed_edge_half() -> None:
    crowd = [link(n, n, 99, 0) for n in range(1, 4 * CROWD + 1)]
    (arrived,) = extend(begin([1]), crowd[:1], frozenset({1}), 1)
    (beyond, *_) = extend([arrived], crowd, frozenset({1}), 1)
    assert beyond.worth == arrived.worth * STEP * 0.5
    (open_, closed) = extend(begin([1]), [link(1, 1, 2, 0), link(2, 1, 3, 0, closed=True)], frozenset({1}), 2)
    assert closed.worth == open_.worth / 2
    assert closed.last_closed


def test_arriving_at_what_was_also_asked_about_counts_and_starts_take_turns() -> None:
    links = [link(1, 1, 2), link(2, 1, 3), link(3, 3, 4)]
    starts = frozenset({1, 3})
    found = extend(begin([1, 3]), links, starts, 9)
    assert [path.edges for path in found if path.start == 1] == [(2,), (1,)]
    assert [path.start for path in interleave_paths(found)][:2] in ([1, 3], [3, 1])
    assert extend(begin([1]), links, NO_WORDS, 1)[0].edges == (1,)
