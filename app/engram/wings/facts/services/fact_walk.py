"""Walking a graph of facts: which names a question may mean, what leads on from them, and what is worth reading.

A walk goes over any ``WalkGraph``: the tables of the service, or the memory of one agent. An agent that is trained
on its memory therefore finds the same facts in the service.
"""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from engram.core.text.temporal import time_constraint
from engram.providers.language import normalise_entity
from engram.providers.language.name_words import FUNCTION_WORDS
from engram.wings.facts.core import fact_paths
from engram.wings.facts.core.beliefs import LEAST_BELIEF
from engram.wings.facts.core.claims import ALWAYS, NEVER
from engram.wings.facts.core.fact_paths import Link, Path, Web
from engram.wings.facts.core.linearise import ReadableFact
from engram.wings.facts.services.question_relations import find_asked_terms, relation_terms
from engram.wings.facts.storage.fact_edges import Edge, NearbyEdges, Start

NAME_WORDS = 9
"""Words of a question that are one name, at most."""
QUESTION_WORDS = 120
"""Words of a question that are looked through for names."""
SAME_NAMES = 4
"""Entities that are called alike and told apart by what is added in brackets."""
STARTS = 12
BEAM_WIDTH = 24
"""Paths of each start that go on after each edge."""
FRONTIER = 32
"""Entities whose edges one step reads."""
EDGES = 32
"""Edges of one entity and direction that a step keeps: what has more is a hub and is cut."""
UNDATED = 0.7
"""What a fact without a first day is worth where days are asked for."""
_WORD = re.compile(r"\w[\w'’.&-]*|[()]", re.UNICODE)


@dataclass(frozen=True, slots=True)
class FactPattern:
    """Pattern of a search: a question, entities, or parts of a fact; at least one of them.

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


class WalkGraph(Protocol):
    """Graph of a walk."""

    def find_edges_around(self, entities: Sequence[int], read: Collection[int], most: int) -> NearbyEdges:
        """Facts that begin or end at these entities or their namesakes, see ``storage.facts.search.around``."""
        ...


@dataclass(frozen=True, slots=True)
class WalkStart:
    """Start of a walk.

    Attributes:
        starts: entities.
        names: entity -> its name, of those that were found by one.
        asked_terms: for each thing that the question asks for, the terms that relations say it by.
    """

    starts: Sequence[int]
    names: Mapping[int, str]
    asked_terms: Sequence[frozenset[str]]


def find_start(pattern: FactPattern, find: Callable[[Sequence[str]], Sequence[Start]]) -> WalkStart:
    """Return the start: the entities that are named, longest names first; ``find`` gives them by normalised names.

    A question that is all in lower case is looked through a second time, where nothing else was found.
    """
    names, ids = list_names(pattern)
    starting_points = select_longest(pattern, find(names)) if names else []
    if not starting_points and not ids and pattern.question is not None:
        lowered = list(dict.fromkeys(runs(pattern.question, lower=True)))
        starting_points = select_longest(pattern, find(lowered)) if lowered else []
    starts = list(dict.fromkeys([*ids, *(start.entity_id for start in starting_points)]))[:STARTS]
    used = {start.name for start in starting_points if start.entity_id in starts}
    return WalkStart(
        starts,
        {start.entity_id: start.surface for start in reversed(starting_points)},
        find_asked_terms(list_other_words(pattern.question or "", used)),
    )


def compute_days(question: str) -> tuple[int, int] | None:
    """Return the first day that a question speaks of, and the one after the last; None if it names no time."""
    constraint = time_constraint(question)
    if constraint is None or (constraint.start is None and constraint.end is None):
        return None
    return (
        ALWAYS if constraint.start is None else constraint.start.toordinal(),
        NEVER if constraint.end is None else constraint.end.toordinal(),
    )


def list_names(pattern: FactPattern) -> tuple[list[str], list[int]]:
    """Return the normalised names that the pattern may mean, and the ids of entities in it."""
    names = [name for name in pattern.entities if isinstance(name, str)]
    names += [name for name in (pattern.subject, pattern.object) if name is not None]
    normalised_names = dict.fromkeys(normalise_entity(name) for name in names)
    if pattern.question is not None:
        normalised_names.update(dict.fromkeys(runs(pattern.question)))
    return [name for name in normalised_names if name], [one for one in pattern.entities if isinstance(one, int)]


def runs(question: str, *, lower: bool = False) -> Iterable[str]:
    """List runs of words that may be a name, longest first; if ``lower``, those in lower case, else the others."""
    places = [match.span() for match in _WORD.finditer(question)][:QUESTION_WORDS]
    for length in range(min(NAME_WORDS, len(places)), 0, -1):
        for first in range(len(places) - length + 1):
            text = question[places[first][0] : places[first + length - 1][1]]
            if text.islower() == lower and text.casefold() not in FUNCTION_WORDS:
                yield normalise_entity(text)


def select_longest(pattern: FactPattern, starts: Sequence[Start]) -> list[Start]:
    """Return the entities that names mean: none within a longer match, exact names first."""
    exact = {start.name for start in starts if start.exact}
    named = {normalise_entity(name) for name in pattern.entities if isinstance(name, str)}
    named |= {normalise_entity(name) for name in (pattern.subject, pattern.object) if name is not None}
    kept: list[Start] = []
    names: list[str] = []
    for start in sorted(starts, key=lambda start: (-len(start.name), start.name, not start.exact, start.entity_id)):
        within = any(start.name != name and f" {start.name} " in f" {name} " for name in names)
        if (within and start.name not in named) or (
            not start.exact and start.name in exact and start.name in named
        ):
            continue
        kept.append(start)
        names.append(start.name)
    return kept


def list_other_words(question: str, names: Iterable[str]) -> list[str]:
    """List the words of the question that belong to none of these names.

    Args:
        names: in lower case, with single spaces.
    """
    folded = " ".join(question.casefold().split())
    for name in sorted(names, key=len, reverse=True):
        folded = folded.replace(name, " ")
    return re.findall(r"\w[\w'’-]*", folded)


def walk(
    ground: WalkGraph, begun: WalkStart, pattern: FactPattern, *, dated: bool
) -> tuple[list[Path], dict[int, Edge]]:
    """Walk from the start; return the best paths, and all edges that were read, by id.

    Args:
        dated: whether the question asks for days, so that ``ground`` has only edges that hold then.
    """
    edges: dict[int, Edge] = {}
    web = Web()
    known = frozenset(begun.starts)
    read: set[int] = set()
    roots: dict[int, int] = {}
    beam = fact_paths.begin(begun.starts)
    ended: list[Path] = []
    link = _Links(roots, begun.asked_terms, dated=dated)
    is_pattern = pattern.question is None and not pattern.entities
    for _ in range(1 if is_pattern else pattern.edges):
        frontier = list(dict.fromkeys(path.end for path in beam if path.end and path.end not in read))[:FRONTIER]
        if frontier:
            near = ground.find_edges_around(frontier, read, EDGES)
            # Of two entities that a name means, the walk came to one first, and both are that one to it.
            for here, other in near.namesakes:
                roots.setdefault(other, roots.get(here, here))
            here_now = {*frontier, *(other for _, other in near.namesakes if roots[other] in frontier)}
            read |= here_now
            for entity, edge in near.edges:
                if edge.id not in edges and entity in here_now:
                    edges[edge.id] = edge
                    web.add(link(edge))
        beam = fact_paths.extend(beam, web, known, BEAM_WIDTH)
        ended += [path for path in beam if pattern.include_closed or not path.last_closed or dated]
    return fact_paths.interleave_paths(
        _select_matching(ended, edges, begun.starts, pattern) if is_pattern else ended
    ), edges


def _select_matching(
    paths: Iterable[Path], edges: dict[int, Edge], starts: Sequence[int], pattern: FactPattern
) -> list[Path]:
    """Facts that fit the pattern: begin at its subject, end at its object."""
    object_ = None if pattern.object is None else normalise_entity(pattern.object)
    matching = []
    for path in paths:
        edge = edges[path.edges[0]]
        if pattern.subject is not None and pattern.object is None and edge.subject_id != path.start:
            continue
        if object_ is not None and pattern.subject is None and edge.object_id != path.start:
            continue
        if object_ is not None and pattern.subject is not None:
            ends = {edge.subject_id, edge.object_id} <= set(starts) or normalise_entity(edge.text) == object_
            if not ends:
                continue
        matching.append(path)
    return list({path.edges: path for path in matching}.values())


class _Links:
    """Converts edges to links of paths. If days are asked for, an edge without a first day counts less."""

    def __init__(self, roots: Mapping[int, int], asked_terms: Sequence[frozenset[str]], *, dated: bool) -> None:
        self._roots = roots
        self._asked_terms = asked_terms
        self._dated = dated
        self._terms_by_relation: dict[tuple[str, bool], frozenset[int]] = {}

    def __call__(self, edge: Edge) -> Link:
        relation = edge.predicate, edge.kind == "date"
        met = self._terms_by_relation.get(relation)
        if met is None:
            terms = relation_terms(edge.predicate, edge.kind)
            met = frozenset(at for at, wanted in enumerate(self._asked_terms) if not wanted.isdisjoint(terms))
            self._terms_by_relation[relation] = met
        belief = edge.belief * UNDATED if self._dated and edge.valid_from == ALWAYS else edge.belief
        begin = self._roots.get(edge.subject_id, edge.subject_id)
        end = self._roots.get(edge.object_id, edge.object_id)
        if end == begin:  # another name of it leads nowhere and says something all the same
            end = 0
        return Link(edge.id, begin, end, belief, edge.closed and not self._dated, met)


def statement(names: tuple[str, str, str], edge: Edge, belief: float, source: Hashable) -> ReadableFact:
    """Return a fact to read: with its years where they are known, and a note if it is doubted or over."""
    notes = (_span(edge), "doubted" if belief < LEAST_BELIEF else "", "over" if edge.closed else "")
    when = ", ".join(filter(None, notes))
    return ReadableFact(*names, source, when)


def _span(edge: Edge) -> str:
    """Return the years in which an edge holds; empty if unknown."""
    first = "" if edge.valid_from == ALWAYS else str(datetime.fromordinal(edge.valid_from).year)
    last = "" if edge.held_until >= NEVER else str(datetime.fromordinal(max(edge.held_until - 1, 1)).year)
    if first == last:
        return first
    return f"{first}-{last}"
