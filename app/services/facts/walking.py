"""Walking a graph of facts: which names a question may mean, what leads on from them, and what is worth reading.

A walk goes over whatever gives it edges (``Ground``): the tables of the service, or the memory of one agent. So an
agent that is trained on the one finds in the other what it found there.
"""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from app.core import paths
from app.core.facts import ALWAYS, HELD, NEVER
from app.core.linearise import Statement
from app.core.paths import Link, Path
from app.core.temporal import time_constraint
from app.providers.language import normalise_entity
from app.providers.language.relations import relation_terms
from app.providers.language.words import FUNCTION_WORDS
from app.storage.facts.search import Edge, Start

NAME_WORDS = 9
"""Words of a question that are one name, at most."""
QUESTION_WORDS = 120
"""Words of a question that are looked through for names."""
SAME_NAMES = 4
"""Entities that are called alike and told apart by what is added in brackets."""
STARTS = 12
KEPT = 24
"""Paths of each start that go on after each edge."""
FRONTIER = 32
"""Entities whose edges one step reads."""
EDGES = 32
"""Edges of one entity and direction that a step keeps: what has more is a hub and is cut."""
UNDATED = 0.7
"""What a fact without a first day is worth where days are asked for."""
_WORD = re.compile(r"\w[\w'’.&-]*|[()]", re.UNICODE)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is searched for: a question, entities, or a pattern of a fact; at least one of them.

    Attributes:
        entities: names or ids.
        subject, predicate, object: a pattern, of which any may be left out.
        edges: L, the most edges of a path.
        as_of: what was known at that moment; None: now.
        days: facts that hold on one of these days, first and after the last; None: by what the question says.
        min_belief: in [0, 1].
        include_closed: also answers that are closed; as bridges they serve in any case.
        paths: how many paths are wanted.
        budget: tokens of the text, about as many as a language model counts.
    """

    question: str | None = None
    entities: Sequence[str | int] = ()
    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    graph: str | None = None
    edges: int = 2
    as_of: datetime | None = None
    days: tuple[int, int] | None = None
    min_belief: float = 0.0
    include_closed: bool = False
    paths: int = 10
    budget: int = 600


class Ground(Protocol):
    """What a walk goes over."""

    def namesakes(self, entities: Sequence[int]) -> Mapping[int, int]:
        """Entity -> another one that its name means as well, see ``storage.facts.search.namesakes``."""
        ...

    def edges(self, entities: Sequence[int], most: int) -> Sequence[Edge]:
        """Facts that begin or end at these entities, up to ``most`` of each and either direction, in id order."""
        ...


def days_of(question: str) -> tuple[int, int] | None:
    """The days that a question speaks of, first and after the last."""
    found = time_constraint(question)
    if found is None or (found.start is None and found.end is None):
        return None
    return (
        ALWAYS if found.start is None else found.start.toordinal(),
        NEVER if found.end is None else found.end.toordinal(),
    )


def names_of(wanted: Wanted) -> tuple[list[str], list[int]]:
    """Normalised names that may be meant, and ids of entities."""
    names = [name for name in wanted.entities if isinstance(name, str)]
    names += [name for name in (wanted.subject, wanted.object) if name is not None]
    found = dict.fromkeys(normalise_entity(name) for name in names)
    if wanted.question is not None:
        found.update(dict.fromkeys(runs(wanted.question)))
    return [name for name in found if name], [one for one in wanted.entities if isinstance(one, int)]


def runs(question: str, *, lower: bool = False) -> Iterable[str]:
    """Every run of words that may be a name, the longest first; of those in lower case only if so."""
    places = [match.span() for match in _WORD.finditer(question)][:QUESTION_WORDS]
    for length in range(min(NAME_WORDS, len(places)), 0, -1):
        for first in range(len(places) - length + 1):
            text = question[places[first][0] : places[first + length - 1][1]]
            if text.islower() == lower and text.casefold() not in FUNCTION_WORDS:
                yield normalise_entity(text)


def longest(wanted: Wanted, found: Sequence[Start]) -> list[Start]:
    """What is meant: no name within a longer one that was found, and exact names first."""
    exact = {start.name for start in found if start.exact}
    said = {normalise_entity(name) for name in wanted.entities if isinstance(name, str)}
    said |= {normalise_entity(name) for name in (wanted.subject, wanted.object) if name is not None}
    kept: list[Start] = []
    names: list[str] = []
    for start in sorted(found, key=lambda start: (-len(start.name), start.name, not start.exact, start.entity_id)):
        within = any(start.name != name and f" {start.name} " in f" {name} " for name in names)
        if (within and start.name not in said) or (not start.exact and start.name in exact and start.name in said):
            continue
        kept.append(start)
        names.append(start.name)
    return kept


def words_beside(question: str, names: Iterable[str]) -> list[str]:
    """The question's words that are not of these names."""
    folded = " ".join(question.casefold().split())
    for name in sorted(names, key=len, reverse=True):
        folded = folded.replace(name, " ")
    return re.findall(r"\w[\w'’-]*", folded)


def walk(
    ground: Ground,
    starts: Sequence[int],
    asked: Sequence[frozenset[str]],
    wanted: Wanted,
    *,
    dated: bool,
) -> tuple[list[Path], dict[int, Edge]]:
    """The best paths, and all edges that were read; ``dated``: days are asked for, and the edges hold then."""
    edges: dict[int, Edge] = {}
    links: dict[int, Link] = {}
    known = frozenset(starts)
    read: set[int] = set()
    one: dict[int, int] = {}
    beam = paths.begin(starts)
    ended: list[Path] = []
    pattern = wanted.question is None and not wanted.entities
    for _ in range(1 if pattern else wanted.edges):
        frontier = list(dict.fromkeys(path.end for path in beam if path.end and path.end not in read))[:FRONTIER]
        if frontier:
            # Of two entities that a name means, the walk came to one first, and both are that one to it.
            for here, other in ground.namesakes(frontier).items():
                one.setdefault(other, one.get(here, here))
            frontier += [other for other, here in one.items() if here in frontier and other not in read]
            read.update(frontier)
            for edge in ground.edges(frontier, EDGES):
                if edge.id not in edges:
                    edges[edge.id] = edge
                    links[edge.id] = _link(edge, one, asked, dated=dated)
        beam = paths.extend(beam, links.values(), known, KEPT)
        ended += [path for path in beam if wanted.include_closed or not path.last_closed or dated]
    return paths.interleaved(_matching(ended, edges, starts, wanted) if pattern else ended), edges


def _matching(found: Iterable[Path], edges: dict[int, Edge], starts: Sequence[int], wanted: Wanted) -> list[Path]:
    """Facts that fit the pattern: begin at its subject, end at its object."""
    object_ = None if wanted.object is None else normalise_entity(wanted.object)
    kept = []
    for path in found:
        edge = edges[path.edges[0]]
        if wanted.subject is not None and wanted.object is None and edge.subject_id != path.start:
            continue
        if object_ is not None and wanted.subject is None and edge.object_id != path.start:
            continue
        if object_ is not None and wanted.subject is not None:
            ends = {edge.subject_id, edge.object_id} <= set(starts) or normalise_entity(edge.text) == object_
            if not ends:
                continue
        kept.append(path)
    return list({path.edges: path for path in kept}.values())


def _link(edge: Edge, one: Mapping[int, int], asked: Sequence[frozenset[str]], *, dated: bool) -> Link:
    """An edge as ranking sees it. Where days are asked for, one that began nobody knows when is a guess."""
    said = relation_terms(edge.predicate, edge.kind)
    met = frozenset(number for number, wanted in enumerate(asked) if not wanted.isdisjoint(said))
    belief = edge.belief * UNDATED if dated and edge.valid_from == ALWAYS else edge.belief
    begin, end = (one.get(entity, entity) for entity in (edge.subject_id, edge.object_id))
    if end == begin:  # another name of it leads nowhere and says something all the same
        end = 0
    return Link(edge.id, begin, end, belief, edge.closed and not dated, met)


def statement(said: tuple[str, str, str], edge: Edge, belief: float, source: Hashable) -> Statement:
    """A fact as it is to be read: with when it held where that is known, and a word where it is doubted or over."""
    notes = (_span(edge), "doubted" if belief < HELD else "", "over" if edge.closed else "")
    when = ", ".join(filter(None, notes))
    return Statement(*said, source, when)


def _span(edge: Edge) -> str:
    """When it held, by years."""
    first = "" if edge.valid_from == ALWAYS else str(datetime.fromordinal(edge.valid_from).year)
    last = "" if edge.held_until >= NEVER else str(datetime.fromordinal(max(edge.held_until - 1, 1)).year)
    if first == last:
        return first
    return f"{first}-{last}"
