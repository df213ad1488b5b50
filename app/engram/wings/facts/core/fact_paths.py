"""Paths through a graph of facts (GRAM, Eq. 3), kept by how well they speak to a question.

All paths of up to L edges would be thousands from one hub. So a walk keeps the best few after each edge, by the
words of the question that they hold, by what is believed of their edges, and by whether they lead to what else was
asked about. Edges count in both directions.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

STEP = 0.9
"""What one more edge leaves of a path's score."""
CLOSED_FACTOR = 0.5
"""What an edge that is closed leaves of it: it is a bridge, and no answer."""
UNASKED_FACTOR = 0.5
"""What an edge leaves of it that the question does not ask for."""
CROWD = 8
"""Edges of an entity from which on a path through it says less: people of one country have little in common."""
LEAST_MATCH = 0.2
"""A path that holds none of the question's words still leads somewhere."""
ARRIVAL = 1.0
"""What it is worth to lead to something else that was asked about, in words of the question."""


class Link(NamedTuple):
    """An edge as ranking sees it; ``object_id`` is 0 at an object that is no entity, where paths end.

    ``terms`` are the things that the question asks for and the edge speaks of, by their numbers.
    """

    id: int
    subject_id: int
    object_id: int
    belief: float
    closed: bool
    terms: frozenset[int]


class Web:
    """Edges by the entities that they lead on from, and what is asked for and they speak of.

    Hundreds of edges are met by dozens of paths: what does not depend on the path is worked out as an edge comes.
    """

    def __init__(self, links: Iterable[Link] = ()) -> None:
        # entity -> asked -> (id, other end, what it leaves of a path, closed)
        self._at: dict[int, dict[frozenset[int], list[tuple[int, int, float, bool]]]] = {}
        self._count: dict[int, int] = {}
        for link in links:
            self.add(link)

    def add(self, link: Link) -> None:
        """Have an edge that is not there lead on, in both directions."""
        number, begin, end, belief, closed, asked = link
        share = belief * (CLOSED_FACTOR if closed else 1.0) * (1.0 if asked else UNASKED_FACTOR)
        ends = ((begin, end), (end, begin)) if end and end != begin else ((begin, end),)
        for here, there in ends:
            self._at.setdefault(here, {}).setdefault(asked, []).append((number, there, share, closed))
            self._count[here] = self._count.get(here, 0) + 1

    def find_edges(self, entity: int) -> Mapping[frozenset[int], Sequence[tuple[int, int, float, bool]]]:
        """Return an entity's edges: (id, other end, rest of the path, closed), by the terms that they match."""
        return self._at.get(entity, {})

    def crowd(self, entity: int) -> int:
        """Return the number of edges of an entity."""
        return self._count.get(entity, 0)


class Path(NamedTuple):
    """Edges from a start; ``end`` is 0 where it ends at an object that is no entity.

    ``score`` is how well it speaks to the question, ``worth`` what is left of that by its edges.
    """

    start: int
    end: int
    edges: tuple[int, ...] = ()
    nodes: frozenset[int] = frozenset()
    terms: frozenset[int] = frozenset()
    worth: float = 1.0
    arrivals: int = 0
    last_closed: bool = False
    score: float = 0.0


def begin(starts: Iterable[int]) -> list[Path]:
    """Paths without an edge."""
    return [Path(start, start, nodes=frozenset({start})) for start in starts]


def extend(paths: Iterable[Path], web: Web, starts: frozenset[int], most: int) -> list[Path]:
    """Return the best ``most`` paths of each start that are one edge longer and visit no entity twice, best first.

    Of equals the shorter is better, then the one of earlier facts.

    Args:
        starts: all that the question names.
    """
    extensions: dict[int, list[_Longer]] = {}
    for path in paths:
        of_start = extensions.setdefault(path.start, [])
        if not path.end:
            continue
        nodes, before = path.nodes, path.edges
        crowd = 1.0 if path.end in starts else min(1.0, (CROWD / max(1, web.crowd(path.end))) ** 0.5)
        worth = path.worth * STEP * crowd
        for edge_terms, links in web.find_edges(path.end).items():
            answered = path.terms | edge_terms if edge_terms else path.terms
            plain, arriving = (len(answered) + ARRIVAL * (path.arrivals + more) + LEAST_MATCH for more in (0, 1))
            of_start += [
                (
                    -(worth * share) * (arriving if end in starts else plain),
                    before,
                    number,
                    end,
                    share,
                    closed,
                    worth,
                    answered,
                    path,
                )
                for number, end, share, closed in links
                if end not in nodes and number not in before
            ]
    return [
        Path(
            path.start,
            end,
            (*before, number),
            path.nodes | {end} if end else path.nodes,
            answered,
            worth * share,
            path.arrivals + (end in starts),
            closed,
            -score,
        )
        for of_start in extensions.values()
        for score, before, number, end, share, closed, worth, answered, path in sorted(of_start)[:most]
    ]


_Longer = tuple[float, tuple[int, ...], int, int, float, bool, float, frozenset[int], Path]
"""A path that is one edge longer, as it is ordered: of its start no other has the same edges."""


def interleave_paths(paths: Iterable[Path]) -> list[Path]:
    """The best path of each start, then the second best of each, and so on: a comparison needs both its sides."""
    seen: dict[int, int] = {}
    ranked = []
    # Two starts may have the same edges between them: of these the one that came first stays first.
    orders = sorted([((-path.score, len(path.edges), path.edges), at, path) for at, path in enumerate(paths)])
    for order, at, path in orders:
        seen[path.start] = seen.get(path.start, 0) + 1
        ranked.append((seen[path.start], order, at, path))
    return [path for *_, path in sorted(ranked)]
