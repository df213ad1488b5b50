"""The passages of several rounds in one order: those of the own question first, and what a later query is surer of.

A session's own question ranks its passages by all that it asks at once. A later query asks for one missing thing,
and what it ranks first is, where its score stands far above that of a passage at the end of the first five, the
better guess for a place there: scores are those of one set of learned weights, sums of evidence that compare
between queries. Everything else comes after, so that a round can add to the best five, but to the first ``KEPT``
of them it does nothing.

Measured on 100 development questions of MuSiQue (docs/sessions.md): ranking the union by the own question alone
leaves recall@5 as it was or lowers it (.761 to .741), since likeness to the question is what the missing passages
lack; a place for the first of a later query at a margin of 0, 2 and 5 raises it to .770, .776 and .776.
"""

from collections.abc import Collection, Sequence

FIRST = 5
"""Places that count as the best."""
KEPT = 3
"""Of them, those that only the own question fills."""
MARGIN = 2.0
"""By how much the first of a later query has to stand above the passage whose place it takes; a log odds."""

Scored = Sequence[tuple[int, float]]
"""Passage and score, best first."""


def order(
    own: Scored,
    later: Sequence[Scored],
    binding: Collection[int] = (),
    telling: Collection[int] = (),
    margin: float = MARGIN,
) -> list[int]:
    """All passages, best first.

    Args:
        own: what the session's own question found.
        later: what each later query found, in order.
        binding: passages by which an unknown of the question is known: none of them gives its place away.
        telling: passages that tell what the query which found them asked for: the first of a later query that does
            takes a place whatever its score, before those that are only alike.
    """
    first = list(own[:FIRST])
    held = {passage for passage, _ in first}
    tops: dict[int, float] = {}
    for found in later:
        for passage, score in found[:1]:
            if passage not in held:
                tops[passage] = max(score, tops.get(passage, score))
    taken: list[int] = []
    for passage, score in sorted(tops.items(), key=lambda pair: (pair[0] not in telling, -pair[1], pair[0])):
        if len(first) + len(taken) < FIRST:
            taken.append(passage)
        else:
            at = next((at for at in range(len(first) - 1, KEPT - 1, -1) if first[at][0] not in binding), None)
            if at is not None and (passage in telling or score - first[at][1] >= margin):
                first.pop(at)
                taken.append(passage)
    best = [*(passage for passage, _ in first), *taken]
    rest: dict[int, float] = {}
    for found in (own, *later):
        for passage, score in found:
            rest[passage] = max(score, rest.get(passage, score))
    beyond = sorted((passage for passage in rest if passage not in best), key=lambda one: (-rest[one], one))
    return [*best, *beyond]
