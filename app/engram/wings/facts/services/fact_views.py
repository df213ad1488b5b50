"""Facts and entities as they stand: who says a fact, what moved it, and what an entity is connected with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from engram.context.errors import NotFoundError
from engram.core.text.passage_source import PassageSource, read_source
from engram.services.auth.scope import Scope
from engram.storage.corpus import passages
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database, Reader
from engram.wings.facts.core.beliefs import CLOSE, CONFIRM, CONTRADICT, SUPERSEDE, BeliefMove
from engram.wings.facts.services import visible_beliefs
from engram.wings.facts.services.fact_transaction import find_graph_id
from engram.wings.facts.storage import fact_rows, predicates
from engram.wings.facts.storage.fact_edges import EdgeFilter
from engram.wings.facts.storage.fact_rows import EntityRow, FactRow, SourceRow, WordRow
from engram.wings.facts.storage.predicates import Predicate

__all__ = [
    "EntityRow",
    "FactCause",
    "FactCitation",
    "FactRow",
    "FactView",
    "FactViewService",
    "Neighbourhood",
    "Predicate",
]


@dataclass(frozen=True, slots=True)
class FactCitation:
    """The source of a fact: a statement by ``stated_by``, with the passage that it came from.

    ``withdrawn_at``: since when it says so no more.
    """

    passage: str | None
    source: PassageSource | None
    stated_by: str
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
                source=None if passage is None else read_source(passage, collection.link_template),
                stated_by=row.stated_by,
                text=row.text,
                learned_at=row.learned_at,
                withdrawn_at=row.withdrawn_at,
            )
        )
    return citations


@dataclass(frozen=True, slots=True)
class FactCause:
    """Word that moved a fact, of a source of it or of a rival, or of a judge."""

    word: WordRow
    move: BeliefMove
    at: datetime


@dataclass(frozen=True, slots=True)
class FactView:
    """A fact with its sources and all that moved it, in order."""

    fact: FactRow
    sources: Sequence[FactCitation]
    history: Sequence[FactCause]


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
            beliefs = visible_beliefs.replay_beliefs(reader, target, [fact_id])
            words = fact_rows.load_words(reader, target, beliefs.facts)
            if reader.reader_sets is not None:
                words = {place: _withhold(word, scope) for place, word in words.items()}
            return FactView(
                beliefs.adapt(fact),
                cite(reader, scope.collection, fact_rows.sources(reader, target, [fact_id])),
                [
                    FactCause(words[move.sequence], move, beliefs.moments[move.sequence])
                    for move in beliefs.moves
                    if move.fact_id == fact_id
                ],
            )

    def facts(self, scope: Scope, facts: Sequence[int]) -> list[FactRow]:
        """These facts as they stand, in the given order, each once; those that are gone are left out."""
        with self._database.read() as reader:
            rows = visible_beliefs.load_facts(reader, scope.collection.id, facts)
        return [rows[fact] for fact in dict.fromkeys(facts) if fact in rows]

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
            near = visible_beliefs.find_edges_around(reader, target, [root], EdgeFilter(), most).edges
            facts = visible_beliefs.load_facts(reader, target, [edge.id for one, edge in near if one == root])
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
        target = scope.collection.id
        with self._database.read() as reader:
            graph_id = find_graph_id(reader, target, graph)
            known = predicates.find(reader, target, graph_id)
            if reader.reader_sets is None:
                return list(known.values())
            counted = predicates.count(reader, target, graph_id)
        return [
            replace(one, subjects=counted[name][0], single=counted[name][1])
            for name, one in known.items()
            if name in counted
        ]


def _withhold(word: WordRow, scope: Scope) -> WordRow:
    """Return a word on a fact without who said it and why, unless the caller did or audits."""
    by_judge = word.kind in {CONFIRM, CONTRADICT, SUPERSEDE, CLOSE}
    if not by_judge or word.principal is None or scope.sees(word.principal):
        return word
    return replace(word, judge=None, text=None)
