"""Facts and entities as they stand: who says a fact, what moved it, and what an entity is connected with."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from engram.context.errors import NotFoundError
from engram.services.auth.scope import Scope
from engram.services.retrieval.passage_source import PassageSource, read_source
from engram.storage.corpus import passages
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database, Reader
from engram.wings.facts.services.fact_transaction import find_graph_id
from engram.wings.facts.storage import belief_groups, fact_edges, fact_rows, predicates
from engram.wings.facts.storage.fact_edges import EdgeFilter
from engram.wings.facts.storage.fact_rows import EntityRow, FactMoveRow, FactRow, SourceRow
from engram.wings.facts.storage.predicates import Predicate

__all__ = [
    "EntityRow",
    "FactCitation",
    "FactMoveRow",
    "FactRow",
    "FactView",
    "FactViewService",
    "Neighbourhood",
    "Predicate",
]


@dataclass(frozen=True, slots=True)
class FactCitation:
    """Who says a fact: a sentence of a passage with the passage's source, or a statement by ``stated_by``.

    ``withdrawn_at``: since when it says so no more.
    """

    passage: str | None
    sentence_id: int | None
    source: PassageSource | None
    stated_by: str | None
    text: str
    learned_at: datetime
    withdrawn_at: datetime | None


def cite(reader: Reader, collection: Collection, rows: Sequence[SourceRow]) -> list[FactCitation]:
    """Citations of these sources, in their order."""
    ids = {row.passage_id for row in rows if row.passage_id is not None}
    cited = passages.load_by_id(reader, collection.id, sorted(ids))
    citations = []
    for row in rows:
        passage = None if row.passage_id is None else cited.get(row.passage_id)
        citations.append(
            FactCitation(
                passage=None if passage is None else passage.external_id,
                sentence_id=row.sentence_id,
                source=None if passage is None else read_source(passage, collection),
                stated_by=row.stated_by,
                text=row.text,
                learned_at=row.learned_at,
                withdrawn_at=row.withdrawn_at,
            )
        )
    return citations


@dataclass(frozen=True, slots=True)
class FactView:
    """A fact with its sources and all that moved it, in order."""

    fact: FactRow
    sources: Sequence[FactCitation]
    history: Sequence[FactMoveRow]


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """An entity, what it stands for, what stands for it, and facts around it."""

    entity: EntityRow
    stands_for: EntityRow | None
    merged: Sequence[EntityRow]
    facts: Sequence[FactRow]


class FactViewService:
    """Shows what graphs of facts hold."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def fact(self, scope: Scope, fact_id: int) -> FactView:
        """A fact with its history and its causes.

        Raises:
            NotFoundError: there is no such fact.
        """
        target = scope.collection.id
        with self._database.snapshot() as reader:
            fact = fact_rows.load_facts(reader, target, [fact_id]).get(fact_id)
            if fact is None:
                raise NotFoundError(f"There is no fact {fact_id} in collection {scope.collection.name!r}.")
            groups = belief_groups.groups(reader, target, belief_groups.find_keys(reader, target, [fact_id]))
            bearing = [claim.fact_id for group in groups for claim in group.claims]
            return FactView(
                fact,
                cite(reader, scope.collection, fact_rows.sources(reader, target, [fact_id])),
                fact_rows.moves(reader, target, fact_id, bearing),
            )

    def facts(self, scope: Scope, facts: Sequence[int]) -> list[FactRow]:
        """These facts as they stand, in the given order, each once; those that are gone are left out."""
        with self._database.read() as reader:
            fact_rows_by_id = fact_rows.load_facts(reader, scope.collection.id, facts)
        return [fact_rows_by_id[fact] for fact in dict.fromkeys(facts) if fact in fact_rows_by_id]

    def entity(self, scope: Scope, entity_id: int, most: int) -> Neighbourhood:
        """An entity with up to ``most`` facts around it in either direction, the surest first.

        Raises:
            NotFoundError: there is no such entity.
        """
        target = scope.collection.id
        with self._database.snapshot() as reader:
            entity = fact_rows.entities(reader, target, [entity_id]).get(entity_id)
            if entity is None:
                raise NotFoundError(f"There is no entity {entity_id} in collection {scope.collection.name!r}.")
            root = entity.stands_for or entity.id
            joined = fact_rows.members(reader, target, [root])
            entities = fact_rows.entities(reader, target, [root, *joined])
            near = fact_edges.find_around(reader, target, [root], EdgeFilter(), most).edges
            facts = fact_rows.load_facts(reader, target, [edge.id for entity, edge in near if entity == root])
            return Neighbourhood(
                entity,
                None if entity.stands_for is None else entities.get(entity.stands_for),
                [entities[one] for one in joined if one in entities] if entity.stands_for is None else [],
                sorted(facts.values(), key=lambda fact: (-fact.belief, fact.id)),
            )

    def predicates(self, scope: Scope, graph: str | None) -> list[Predicate]:
        """Return the counts and declarations of a graph's predicates.

        Raises:
            NotFoundError: there is no such graph.
        """
        with self._database.read() as reader:
            predicate_rows = predicates.find(
                reader, scope.collection.id, find_graph_id(reader, scope.collection.id, graph)
            )
        return list(predicate_rows.values())
