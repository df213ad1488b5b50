"""What entities stand for: whatever the order of joins, who is one with whom depends on which joins count."""

from hypothesis import given
from hypothesis import strategies as st

from engram.wings.facts.core.entity_joins import roots

pairs = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)), max_size=12)


def test_chained_joins_resolve_to_one_root() -> None:
    assert roots([(3, 2), (2, 1)]) == {3: 1, 2: 1}
    assert roots([(2, 1)]) == {2: 1}
    assert roots([(3, 2), (4, 3)]) == {3: 2, 4: 2}


def test_join_of_joined_entities_changes_nothing() -> None:
    assert roots([(2, 1), (1, 2), (1, 1)]) == {2: 1}


@given(pairs, st.randoms())
def test_the_order_of_joins_does_not_say_who_is_one(joins: list[tuple[int, int]], random: object) -> None:
    shuffled = list(joins)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert _sides(roots(joins)) == _sides(roots(shuffled))


@given(pairs)
def test_roots_are_never_joined_themselves(joins: list[tuple[int, int]]) -> None:
    found = roots(joins)
    assert not set(found) & set(found.values())


def _sides(root: dict[int, int]) -> set[frozenset[int]]:
    return {frozenset({one, *(e for e, r in root.items() if r == one)}) for one in root.values()}
