"""A graph of facts that is one agent's memory: a value, without a database (GRAM, section 3.1).

It goes by the code of the wing ``facts``: what a triple is kept as (``fact_learning.build_sourced_fact``), what is
believed of it (``beliefs.replay``), how it is walked (``fact_walk``) and read (``linearise``). Nothing is ever
removed from it: what an update contradicts is doubted, what it supersedes is closed, and both stay bridges to other
facts. Every fact has the sentences that say it.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Literal

from engram.core.learning.noise_and_caps import NoiseAndCaps
from engram.providers.language import normalise_entity
from engram.wings.agent.services.agent_memory_index import Index, IndexedFact, MemoryGraph
from engram.wings.facts.core.beliefs import (
    CONTRADICT,
    SOURCE,
    SUPERSEDE,
    Fact,
    FactStatement,
    Group,
    replay,
)
from engram.wings.facts.core.claims import ALWAYS
from engram.wings.facts.core.fact_paths import Path
from engram.wings.facts.core.linearise import LinearisedFacts, linearise
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.services import fact_learning
from engram.wings.facts.services.fact_walk import FactPattern, compute_days, find_start, statement, walk
from engram.wings.facts.storage.fact_edges import Edge

AGENT = "agent"
"""Who contradicts and supersedes: the agent whose memory it is."""
NOISE = NoiseAndCaps(positive=0.5, negative=1.0, process=0.001)
"""By which the agent's own words count, as published; sources count as they do in the service."""
FUNCTIONAL = frozenset(
    {
        "date of birth",
        "date of death",
        "place of birth",
        "place of death",
        "release date",
        "country of origin",
        "citizenship",
        "country",
        "population",
        "directed by",
        "father",
        "mother",
    }
)
"""Of which a subject has one object at a time, as counted over 2WikiMultihopQA (docs/facts.md): a graph
that begins empty has nothing to count."""
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
"""Words have the time of their turn, in seconds from here: a play is the same whenever it is played."""


@dataclass(frozen=True, slots=True)
class FactSentence:
    """A sentence that says something: its key, and the document that it is of."""

    key: int | str
    document: str


@dataclass(frozen=True, slots=True)
class Remark:
    """Something said of a fact, by its place: that a source says it, or what the agent says against it."""

    turn: int
    kind: Literal["source", "contradict", "supersede"]
    fact: int
    source: int | None = None
    by: int | None = None


@dataclass(frozen=True, slots=True)
class MemorySearchResult:
    """Result of a search: facts by their places, answers first, and the same as text."""

    text: LinearisedFacts
    facts: tuple[int, ...] = ()
    paths: tuple[Path, ...] = ()
    starts: tuple[str, ...] = ()


@dataclass(frozen=True)
class AgentMemory:
    """Facts with what was said of them; all of these are known by their places, which never change."""

    sources: tuple[FactSentence, ...] = ()
    facts: tuple[IndexedFact, ...] = ()
    remarks: tuple[Remark, ...] = ()
    functional: frozenset[str] = field(default=FUNCTIONAL)

    def insert(self, triples: Iterable[tuple[Triple, FactSentence]], turn: int) -> tuple["AgentMemory", list[int]]:
        """With these facts said by these sentences, and the place of each; what is no fact is left out."""
        sources, facts, remarks = list(self.sources), list(self.facts), list(self.remarks)
        at = {fact.identity: place for place, fact in enumerate(facts)}
        numbers = {source.key: number for number, source in enumerate(sources, start=1)}
        places: list[int] = []
        for triple, source in triples:
            row = fact_learning.build_sourced_fact(triple, NOISE)
            if row is None:
                continue
            if source.key not in numbers:
                sources.append(source)
                numbers[source.key] = len(sources)
            number = numbers[source.key]
            days = (row.valid_from, row.valid_to)
            key = normalise_entity(row.object[1]) if row.kind == "entity" else row.object[0]
            fact = IndexedFact(
                row.subject[1], row.predicate, row.object[1], key, triple.kind, *days, row.confidence, (number,)
            )
            place = at.setdefault(fact.identity, len(facts))
            if place == len(facts):
                facts.append(fact)
            elif number in facts[place].sources:
                places.append(place)
                continue
            else:
                facts[place] = replace(facts[place], sources=(*facts[place].sources, number))
            remarks.append(Remark(turn, "source", place, source=number))
            places.append(place)
        changed = replace(self, sources=tuple(sources), facts=tuple(facts), remarks=tuple(remarks))
        return changed, list(dict.fromkeys(places))

    def contradict(self, facts: Iterable[int], turn: int) -> "AgentMemory":
        """With these facts spoken against; they are believed less, and stay.

        Raises:
            ValueError: there is no such fact.
        """
        remarks = tuple(Remark(turn, "contradict", self._place(fact)) for fact in facts)
        return replace(self, remarks=(*self.remarks, *remarks))

    def supersede(self, pairs: Iterable[tuple[int, int]], turn: int) -> "AgentMemory":
        """With the first of each pair ended by the second, on the day on which that begins if it has one.

        Raises:
            ValueError: there is no such fact.
        """
        remarks = tuple(Remark(turn, "supersede", self._place(old), by=self._place(new)) for old, new in pairs)
        return replace(self, remarks=(*self.remarks, *remarks))

    def conflicts(self, fresh: Iterable[int]) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the facts that new facts contradict or supersede by rule, under functional predicates only.

        A fact without days that is told anew with a day on which it begins is superseded; what an earlier fact's
        own days settle is left to ``wings.facts.core.beliefs``.
        """
        wrong: dict[int, None] = {}
        over: dict[int, int] = {}
        new = list(fresh)
        for place in new:
            claim, fact = self._index.claims[place], self.facts[place]
            if fact.predicate not in self.functional:
                continue
            for other in self._index.list_similar_facts(place):
                before = self._index.claims[other]
                if other in new or before.agrees(claim):
                    continue
                if before.timeless and claim.valid_from > ALWAYS:
                    over[other] = place
                elif before.rivals(claim):
                    wrong[other] = None
        return list(wrong), list(over.items())

    @cached_property
    def believed(self) -> dict[int, Fact]:
        """Return the belief of each fact, by its place."""
        words: dict[int, list[FactStatement]] = defaultdict(list)
        for sequence, remark in enumerate(self.remarks, start=1):
            words[remark.fact].append(self._word(sequence, remark))
        grouped: dict[Hashable, list[int]] = defaultdict(list)
        for place, fact in enumerate(self.facts):
            one = (normalise_entity(fact.subject), fact.predicate)
            functional = fact.predicate in self.functional
            grouped[one if functional else (*one, fact.kind == "entity", fact.object_key)].append(place)
        groups = [
            Group(
                [self._index.claims[place] for place in places],
                sorted((word for place in places for word in words[place]), key=lambda word: word.sequence),
                self.facts[places[0]].predicate in self.functional,
            )
            for places in grouped.values()
        ]
        return replay(groups)[0]

    def search(self, query: str, *, edges: int = 2, paths: int = 10, budget: int = 400) -> MemorySearchResult:
        """Paths from what a query names, as the service finds them, and their facts as text within a budget."""
        pattern = FactPattern(question=query, edges=edges, paths=paths, budget=budget)
        days = compute_days(query)
        begin = find_start(pattern, self._index.starts)
        ranked, _ = walk(MemoryGraph(self._index, self._edges, days), begin, pattern, dated=days is not None)
        chosen = ranked[:paths]
        places = list(dict.fromkeys(fact - 1 for path in chosen for fact in path.edges))
        text = self.as_text(places, budget)
        kept_places = tuple(places[: text.statement_count])
        whole = tuple(path for path in chosen if all(fact - 1 in kept_places for fact in path.edges))
        return MemorySearchResult(
            text, kept_places, whole, tuple(self._index.surfaces[start] for start in begin.starts)
        )

    def summary(self, question: str, budget: int) -> LinearisedFacts:
        """Return the facts that fit the budget: those that match the question first, then the latest."""
        first = list(self.search(question, paths=24, budget=budget).facts)
        other_places = [place for place in reversed(range(len(self.facts))) if place not in first]
        return self.as_text([*first, *other_places], budget)

    def as_text(self, places: Sequence[int], budget: int) -> LinearisedFacts:
        """These facts as text, as many of the first as fit; numbers are those of sources."""
        statements = [
            statement(
                (fact.subject, fact.predicate, fact.object),
                self._edges[place],
                self.believed[place].belief,
                fact.sources[0],
            )
            for place in places
            for fact in [self.facts[place]]
        ]
        return linearise(statements, budget, known=range(1, len(self.sources) + 1))

    def line(self, place: int) -> str:
        """One fact in words, without its source."""
        fact = self.facts[place]
        return f"{fact.subject} | {fact.predicate}: {fact.object}"

    def to_json(self) -> dict[str, Any]:
        """Return the memory as JSON."""
        return {
            "sources": [[one.key, one.document] for one in self.sources],
            "facts": [
                [*(getattr(fact, name) for name in IndexedFact.__slots__[:-1]), list(fact.sources)]
                for fact in self.facts
            ],
            "remarks": [[one.turn, one.kind, one.fact, one.source, one.by] for one in self.remarks],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "AgentMemory":
        """The memory that ``stored`` gave."""
        return cls(
            tuple(FactSentence(*one) for one in stored.get("sources", ())),
            tuple(_build_indexed_fact(*one) for one in stored.get("facts", ())),
            tuple(Remark(*one) for one in stored.get("remarks", ())),
        )

    def _place(self, fact: int) -> int:
        if not 0 <= fact < len(self.facts):
            raise ValueError(f"there is no fact {fact}")
        return fact

    def _word(self, sequence: int, remark: Remark) -> FactStatement:
        fact, moment = self.facts[remark.fact], _BEGINNING + timedelta(seconds=remark.turn)
        noise = NOISE
        who, kind = AGENT, CONTRADICT if remark.kind == "contradict" else SUPERSEDE
        if remark.source is not None:
            noise, kind = fact_learning.as_source(NOISE), SOURCE
            who = f"source {self.sources[remark.source - 1].document}"
        until = None
        if remark.by is not None and self.facts[remark.by].valid_from > ALWAYS:
            until = self.facts[remark.by].valid_from
        confidence = fact.confidence if remark.source is not None else 1.0
        return FactStatement(
            sequence=sequence,
            fact_id=remark.fact,
            kind=kind,  # type: ignore[arg-type] # one of those above
            who=who,
            day=moment.date().isoformat(),
            at=moment,
            positive=noise.positive / confidence,
            negative=noise.negative / confidence,
            process_noise=noise.process,
            other=remark.by,
            until=until,
        )

    @cached_property
    def _edges(self) -> list[Edge]:
        return self._index.edges(self.believed)

    @cached_property
    def _index(self) -> Index:
        return Index(self.facts)


def _build_indexed_fact(*values: Any) -> IndexedFact:
    *parts, sources = values
    return IndexedFact(**dict(zip(IndexedFact.__slots__, [*parts, tuple(sources)], strict=True)))
