"""Order the passages of several rounds: those of the session's own question first.

A passage of a later query takes a place among the first five only if one of its sentences tells what that query
asked for. Being alike, or having a higher score, is no reason: a session never gives evidence away for a guess. The
first ``OWN_PLACES`` places always stay, and so does every passage by which an unknown of the question is bound.
"""

from collections.abc import Collection, Sequence

BEST_PLACES = 5
"""Places that count as the best."""
OWN_PLACES = 3
"""Of them, those that only the own question fills."""

Scored = Sequence[tuple[int, float]]
"""Passage and score, best first."""


def order(
    own: Scored,
    later: Sequence[Scored],
    binding: Collection[int] = (),
    telling: Collection[int] = (),
) -> list[int]:
    """All passages, best first.

    Args:
        own: what the session's own question found.
        later: what each later query found, in order.
        binding: passages by which an unknown of the question is known: none of them gives its place away.
        telling: passages that tell what the query which found them asked for: the first of a later query that does
            takes a place whatever its score, before those that are only alike.
    """
    first = list(own[:BEST_PLACES])
    first_passages = {passage for passage, _ in first}
    tops: dict[int, float] = {}
    for ranking in later:
        for passage, score in ranking[:1]:
            if passage not in first_passages:
                tops[passage] = max(score, tops.get(passage, score))
    taken: list[int] = []
    for passage in sorted(tops, key=lambda one: (one not in telling, -tops[one], one)):
        if len(first) + len(taken) < BEST_PLACES:
            taken.append(passage)
        else:
            at = next((at for at in range(len(first) - 1, OWN_PLACES - 1, -1) if first[at][0] not in binding), None)
            if at is not None and passage in telling:
                first.pop(at)
                taken.append(passage)
    best = [*(passage for passage, _ in first), *taken]
    rest: dict[int, float] = {}
    for ranking in (own, *later):
        for passage, score in ranking:
            rest[passage] = max(score, rest.get(passage, score))
    beyond = sorted((passage for passage in rest if passage not in best), key=lambda one: (-rest[one], one))
    return [*best, *beyond]
