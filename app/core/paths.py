"""Paths through a graph of facts (GRAM, Eq. 3), kept by how well they speak to a question.

All paths of up to L edges would be thousands from one hub. So a walk keeps the best few after each edge, by the
words of the question that they hold, by what is believed of their edges, and by whether they lead to what else was
asked about. Edges count in both directions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nsmallest

STEP = 0.9
"""What one more edge leaves of a path's score."""
CLOSED = 0.5
"""What an edge that is closed leaves of it: it is a bridge, and no answer."""
ASIDE = 0.5
"""What an edge leaves of it that the question does not ask for."""
CROWD = 8
"""Edges of an entity from which on a path through it says less: people of one country have little in common."""
ANYTHING = 0.2
"""A path that holds none of the question's words still leads somewhere."""
ARRIVAL = 1.0
"""What it is worth to lead to something else that was asked about, in words of the question."""


@dataclass(frozen=True, slots=True)
class Link:
    """An edge as ranking sees it; ``object_id`` is 0 at an object that is no entity, where paths end.

    ``asked`` are the things that the question asks for and the edge speaks of, by their numbers.
    """

    id: int
    subject_id: int
    object_id: int
    belief: float
    closed: bool
    asked: frozenset[int]


@dataclass(frozen=True, slots=True)
class Path:
    """Edges from a start; ``end`` is 0 where it ends at an object that is no entity.

    ``score`` is how well it speaks to the question, ``worth`` what is left of that by its edges.
    """

    start: int
    end: int
    edges: tuple[int, ...] = ()
    nodes: frozenset[int] = frozenset()
    asked: frozenset[int] = frozenset()
    worth: float = 1.0
    arrivals: int = 0
    last_closed: bool = False
    score: float = 0.0


def begin(starts: Iterable[int]) -> list[Path]:
    """Paths without an edge."""
    return [Path(start, start, nodes=frozenset({start})) for start in starts]


def extend(paths: Sequence[Path], links: Iterable[Link], starts: frozenset[int], most: int) -> list[Path]:
    """Of paths that are one edge longer and come to no entity twice the best ``most`` of each start, best first.

    Of equals the shorter is better, then the one of earlier facts.

    Args:
        starts: all that the question names.
    """
    at: dict[int, list[Link]] = {path.end: [] for path in paths if path.end}
    for link in links:
        if link.subject_id in at:
            at[link.subject_id].append(link)
        if link.object_id != link.subject_id and link.object_id in at:
            at[link.object_id].append(link)
    found: dict[int, list[_Longer]] = {}
    for path in paths:
        onwards = at.get(path.end, ()) if path.end else ()
        crowd = 1.0 if path.end in starts else min(1.0, (CROWD / max(1, len(onwards))) ** 0.5)
        worth = path.worth * STEP * crowd
        of_start = found.setdefault(path.start, [])
        for link in onwards:
            end = link.object_id if link.subject_id == path.end else link.subject_id
            if end in path.nodes or link.id in path.edges:
                continue
            asked = path.asked | link.asked if link.asked else path.asked
            left = worth * link.belief * (CLOSED if link.closed else 1.0) * (1.0 if link.asked else ASIDE)
            score = left * (len(asked) + ARRIVAL * (path.arrivals + (end in starts)) + ANYTHING)
            of_start.append((-score, path.edges, link.id, path, link, end, asked, left))
    return [
        Path(
            path.start,
            end,
            (*path.edges, link.id),
            path.nodes | {end} if end else path.nodes,
            asked,
            left,
            path.arrivals + (end in starts),
            link.closed,
            -score,
        )
        for of_start in found.values()
        for score, _, _, path, link, end, asked, left in nsmallest(most, of_start, key=_first)
    ]


_Longer = tuple[float, tuple[int, ...], int, Path, Link, int, frozenset[int], float]


def _first(longer: _Longer) -> tuple[float, tuple[int, ...], int]:
    return longer[:3]


def interleaved(paths: Iterable[Path]) -> list[Path]:
    """The best path of each start, then the second best of each, and so on: a comparison needs both its sides."""
    seen: dict[int, int] = {}
    ranked = []
    for path in sorted(paths, key=_order):
        seen[path.start] = seen.get(path.start, 0) + 1
        ranked.append((seen[path.start], _order(path), path))
    return [path for _, _, path in sorted(ranked, key=lambda row: row[:2])]


def _order(path: Path) -> tuple[float, int, tuple[int, ...]]:
    return -path.score, len(path.edges), path.edges
