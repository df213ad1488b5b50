"""Entities that are one: joined, so that facts by either name are of one entity, and taken apart again."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from engram.context.errors import InvalidRequestError, NotFoundError
from engram.core.learning.noise_and_caps import NoiseAndCaps
from engram.services.auth.scope import Scope
from engram.storage.database import Database, Writer
from engram.wings.facts.core.entity_joins import roots
from engram.wings.facts.services import fact_learning
from engram.wings.facts.services.fact_transaction import Author, begin_change
from engram.wings.facts.storage import belief_groups, fact_events, fact_rows, joined_entities


class EntityMergeService:
    """Merges and splits entities of facts; each merge is an event of the log."""

    def __init__(self, database: Database, constants: NoiseAndCaps) -> None:
        self._database = database
        self._constants = constants

    def merge(self, scope: Scope, entity_id: int, other_ids: Sequence[int], *, judge: str, key: str) -> None:
        """Have other entities be one with this: facts by their names are its own until that is taken back.

        Raises:
            NotFoundError: there is no such entity, or the collection was deleted meanwhile.
            InvalidRequestError: they are of different graphs, or one is merged with itself.
            IdempotencyConflictError: the key was used before with another request.
        """
        said_by = scope.judge(judge)
        with begin_change(self._database, scope) as (writer, target):
            author = Author.from_judge(
                writer, scope, said_by, self._constants, key, [said_by[0], entity_id, list(other_ids)]
            )
            if author.add_place(0).find_repeated_event(writer, target) is not None:
                return
            entities = fact_rows.entities(writer, target, [entity_id, *other_ids])
            missing = [one for one in (entity_id, *other_ids) if one not in entities]
            if missing:
                raise NotFoundError(f"There is no entity {missing[0]}.")
            into = entities[entity_id]
            root = into.stands_for or into.id
            for place, other in enumerate(dict.fromkeys(other_ids)):
                if entities[other].graph_id != into.graph_id or root in {other, entities[other].stands_for}:
                    raise InvalidRequestError("Entities to merge are different ones of one graph.")
                author.add_place(place).append(
                    writer,
                    target,
                    into.graph_id,
                    "merge",
                    entity_id=root,
                    other_id=entities[other].stands_for or other,
                )
            settle(writer, target, [root, *other_ids])

    def split(self, scope: Scope, entity_id: int) -> int:
        """Take apart what was merged into this entity, or, if it stands for another, it from that; how many.

        Raises:
            NotFoundError: there is no such entity, or the collection was deleted meanwhile.
        """
        with begin_change(self._database, scope) as (writer, target):
            entity = fact_rows.entities(writer, target, [entity_id]).get(entity_id)
            if entity is None:
                raise NotFoundError(f"There is no entity {entity_id}.")
            side = joined_entities.side(writer, target, [entity_id])
            new_joins = [
                join.event_id
                for join in joined_entities.list_joins(writer, target, side)
                if join.counts and (join.joining if entity.stands_for is not None else join.staying) == entity_id
            ]
            fact_events.revoke(writer, target, new_joins)
            settle(writer, target, side)
            return len(new_joins)


def join(writer: Writer, collection_id: int, graph_id: int, new_joins: Sequence[joined_entities.NewJoin]) -> int:
    """Record joins and have them count, but for those that are one already and those that somebody took apart.

    Returns:
        How many there were.
    """
    stored_roots = joined_entities.side(
        writer, collection_id, {entity for one in new_joins for entity in (one.joining, one.staying)}
    )
    root = {entity: stands_for or entity for entity, stands_for in stored_roots.items()}
    apart = {
        frozenset((one.joining, one.staying))
        for one in joined_entities.list_joins(writer, collection_id, stored_roots)
        if one.undone
    }
    kept: list[joined_entities.NewJoin] = []
    for one in new_joins:
        joining, staying = root[one.joining], root[one.staying]
        if joining == staying or {frozenset((one.joining, one.staying)), frozenset((joining, staying))} & apart:
            continue
        kept.append(replace(one, joining=joining, staying=staying))
        root = {entity: staying if above == joining else above for entity, above in root.items()}
    if kept:
        joined_entities.append(writer, collection_id, graph_id, kept)
        settle(writer, collection_id, stored_roots)
    return len(kept)


def settle(writer: Writer, collection_id: int, entities: Iterable[int]) -> None:
    """Have these entities, and what is or was one with them, stand for what the joins that count say."""
    stored_roots = joined_entities.side(writer, collection_id, entities)
    entity_roots = roots(
        (join.joining, join.staying)
        for join in joined_entities.list_joins(writer, collection_id, stored_roots)
        if join.counts
    )
    changed = {
        entity: entity_roots.get(entity)
        for entity, root in stored_roots.items()
        if root != entity_roots.get(entity)
    }
    if changed:
        facts = joined_entities.list_facts_by_entity(writer, collection_id, changed)
        before = belief_groups.find_keys(writer, collection_id, facts)
        joined_entities.stand_for(writer, collection_id, changed)
        fact_learning.settle(writer, collection_id, before | belief_groups.find_keys(writer, collection_id, facts))
