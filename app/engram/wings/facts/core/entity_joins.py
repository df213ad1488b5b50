"""Entities that are one: what each stands for, as a function of the joins that count, in their order.

Joins are an undirected matter: whatever was said of either side is said of both. So an entity stands for the one
that its side was joined to last, and a join that counts no more, or again, is a replay without it, or with it.
"""

from collections.abc import Iterable


def roots(joins: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Return the root of each joined entity after all joins (joining, staying), in their order.

    A join of two that are one already says nothing.
    """
    root: dict[int, int] = {}
    sides: dict[int, list[int]] = {}
    for joining, staying in joins:
        left, kept = root.get(joining, joining), root.get(staying, staying)
        if left == kept:
            continue
        joined = sides.pop(left, [left])
        sides.setdefault(kept, [kept]).extend(joined)
        root.update(dict.fromkeys(joined, kept))
    return root
