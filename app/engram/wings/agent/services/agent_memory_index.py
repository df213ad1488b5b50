"""Index of an agent's memory: entities by name, and facts by subject and object."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from engram.providers.language import normalise_entity
from engram.wings.facts.core.beliefs import Fact
from engram.wings.facts.core.claims import ALWAYS, NEVER, Claim, Days
from engram.wings.facts.core.triples import Kind
from engram.wings.facts.services.fact_walk import SAME_NAMES
from engram.wings.facts.storage.fact_edges import Edge, NearbyEdges, Start
from engram.wings.facts.storage.fact_graph import drop_brackets


@dataclass(frozen=True, slots=True)
class IndexedFact:
    """A fact; ``sources`` are numbers of the sentences that say it, from 1.

    ``object_key`` is what equal objects share that are no entities; of one that is, its normalised name.
    """

    subject: str
    predicate: str
    object: str
    object_key: str
    kind: Kind
    valid_from: int
    valid_to: int
    confidence: float
    sources: tuple[int, ...]

    @property
    def identity(self) -> Hashable:
        """Return the key that equal facts share."""
        return (
            normalise_entity(self.subject),
            self.predicate,
            self.object_key,
            self.kind == "entity",
            self.valid_from,
            self.valid_to,
        )


@dataclass(frozen=True)
class Index:
    """Facts by what they are about; they are known by their places."""

    facts: tuple[IndexedFact, ...]

    @cached_property
    def entities(self) -> dict[str, int]:
        """Normalised name -> entity, from 1, in the order in which they came."""
        entity_by_name: dict[str, int] = {}
        for fact in self.facts:
            entity_by_name.setdefault(normalise_entity(fact.subject), len(entity_by_name) + 1)
            if fact.kind == "entity":
                entity_by_name.setdefault(fact.object_key, len(entity_by_name) + 1)
        return entity_by_name

    @cached_property
    def surfaces(self) -> dict[int, str]:
        surface_by_entity: dict[int, str] = {}
        for fact in self.facts:
            surface_by_entity.setdefault(self.entities[normalise_entity(fact.subject)], fact.subject)
            if fact.kind == "entity":
                surface_by_entity.setdefault(self.entities[fact.object_key], fact.object)
        return surface_by_entity

    @cached_property
    def called(self) -> dict[str, list[int]]:
        """Name without what is added in brackets -> entities that are called so."""
        entities_by_name: dict[str, list[int]] = defaultdict(list)
        for name, entity in self.entities.items():
            entities_by_name[drop_brackets(name)].append(entity)
        return entities_by_name

    @cached_property
    def names(self) -> dict[int, str]:
        return {entity: name for name, entity in self.entities.items()}

    @cached_property
    def claims(self) -> list[Claim]:
        return [
            Claim(place, self._object(fact), fact.valid_from, fact.valid_to)
            for place, fact in enumerate(self.facts)
        ]

    def _object(self, fact: IndexedFact) -> Hashable:
        if fact.kind == "entity":
            return self.entities[fact.object_key]
        start, separator, end = fact.object_key.partition("/")
        if fact.kind == "date" and separator and start.isdigit() and end.isdigit():
            return Days(int(start), int(end))
        return fact.object_key

    @cached_property
    def of_subject(self) -> dict[tuple[str, str], list[int]]:
        places_by_subject: dict[tuple[str, str], list[int]] = defaultdict(list)
        for place, fact in enumerate(self.facts):
            places_by_subject[normalise_entity(fact.subject), fact.predicate].append(place)
        return places_by_subject

    def namesake(self, entity: int) -> int | None:
        """Return the only other entity with the same name, brackets left out."""
        name = self.names[entity]
        namesakes = [one for one in self.called.get(drop_brackets(name), [])[:SAME_NAMES] if one != entity]
        plain = [one for one in namesakes if self.names[one] == drop_brackets(name)]
        return namesakes[0] if len(namesakes) == 1 and bool(plain) == (name != drop_brackets(name)) else None

    def list_similar_facts(self, place: int) -> list[int]:
        """Facts of the same predicate and of the same subject, or one that its name means as well."""
        fact = self.facts[place]
        subject = normalise_entity(fact.subject)
        other = self.namesake(self.entities[subject])
        names = [subject] if other is None else [subject, self.names[other]]
        return [one for name in names for one in self.of_subject.get((name, fact.predicate), ())]

    def edges(self, believed: Mapping[int, Fact]) -> list[Edge]:
        """Facts as a walk sees them; their ids begin at 1."""
        return [
            Edge(
                place + 1,
                self.entities[normalise_entity(fact.subject)],
                fact.predicate,
                self.entities[fact.object_key] if fact.kind == "entity" else 0,
                fact.object,
                fact.kind,
                believed[place].belief,
                fact.valid_from,
                min(fact.valid_to, believed[place].held_until),
                believed[place].closed_at is not None,
            )
            for place, fact in enumerate(self.facts)
        ]

    def starts(self, names: Iterable[str]) -> list[Start]:
        """The entities of these normalised names, those that lack what they have in brackets included."""
        starts = []
        for name in names:
            if name in self.entities:
                starts.append(Start(name, self.entities[name], self.surfaces[self.entities[name]], True))
            longer = [one for one in self.called.get(name, ()) if self.names[one] != name]
            starts += [Start(name, one, self.surfaces[one], False) for one in longer[:SAME_NAMES]]
        return starts


class MemoryGraph:
    """A memory, to be walked; ``days``: only facts that can hold on one of them."""

    def __init__(self, index: Index, edges: Iterable[Edge], days: tuple[int, int] | None) -> None:
        self._index = index
        self._days = days or (ALWAYS, NEVER)
        self._at: dict[int, list[Edge]] = defaultdict(list)
        for edge in edges:
            self._at[edge.subject_id].append(edge)
            if edge.object_id not in {0, edge.subject_id}:
                self._at[edge.object_id].append(edge)

    def find_edges_around(self, entities: Sequence[int], read: Collection[int], most: int) -> NearbyEdges:
        """Facts that begin or end at these entities or their namesakes, up to ``most`` of each and direction."""
        alike = [(one, other) for one in entities if (other := self._index.namesake(one)) is not None]
        near = dict.fromkeys([*entities, *(other for _, other in alike if other not in read)])
        return NearbyEdges(alike, [(entity, edge) for entity in near for edge in self._list_edges(entity, most)])

    def _list_edges(self, entity: int, most: int) -> list[Edge]:
        first, last = self._days
        edges: list[Edge] = []
        for own in (True, False):
            along = [edge for edge in self._at.get(entity, ()) if (edge.subject_id == entity) == own]
            edges += [edge for edge in along if edge.valid_from < last and edge.held_until > first][:most]
        return edges
