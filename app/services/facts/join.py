"""Entities that are one: merged, so that facts by either name are of one entity, and taken apart again."""

from collections.abc import Sequence

from app.core.constants import Constants
from app.errors import InvalidRequestError, NotFoundError
from app.services.access.scope import Scope
from app.services.facts import learn
from app.services.facts.begin import Author, begun
from app.storage.database import Database, Writer
from app.storage.facts import beliefs, events, view
from app.storage.facts.events import StoredEvent


class JoinService:
    """Merges and splits entities of facts; each merge is an event of the log."""

    def __init__(self, database: Database, constants: Constants) -> None:
        self._database = database
        self._constants = constants

    def merge(self, scope: Scope, entity_id: int, others: Sequence[int], *, judge: str, key: str) -> None:
        """Have other entities be one with this: facts by their names are its own until that is taken back.

        Raises:
            NotFoundError: there is no such entity, or the collection was deleted meanwhile.
            InvalidRequestError: they are of different graphs, or one is merged with itself.
            IdempotencyConflictError: the key was used before with another request.
        """
        said_by = scope.judge(judge)
        with begun(self._database, scope) as (writer, target):
            author = Author.of(writer, target, said_by, self._constants, key, [said_by[0], entity_id, list(others)])
            if author.at(0).repeated(writer, target) is not None:
                return
            found = view.entities(writer, target, [entity_id, *others])
            missing = [one for one in (entity_id, *others) if one not in found]
            if missing:
                raise NotFoundError(f"There is no entity {missing[0]}.")
            into = found[entity_id]
            root = into.stands_for or into.id
            for place, other in enumerate(dict.fromkeys(others)):
                if found[other].graph_id != into.graph_id or root in {other, found[other].stands_for}:
                    raise InvalidRequestError("Entities to merge are different ones of one graph.")
                author.at(place).append(
                    writer,
                    target,
                    into.graph_id,
                    "merge",
                    entity_id=root,
                    other_id=found[other].stands_for or other,
                )
                _join(writer, target, found[other].stands_for or other, root)

    def split(self, scope: Scope, entity_id: int) -> int:
        """Take apart what was merged into this entity, or, if it stands for another, it from that; how many.

        Raises:
            NotFoundError: there is no such entity, or the collection was deleted meanwhile.
        """
        with begun(self._database, scope) as (writer, target):
            found = view.entities(writer, target, [entity_id]).get(entity_id)
            if found is None:
                raise NotFoundError(f"There is no entity {entity_id}.")
            joined = events.merges(writer, target, [found.stands_for or entity_id])
            wanted = [event for event in joined if found.stands_for is None or event.other_id == entity_id]
            for event in reversed(wanted):
                events.revoke(writer, target, event.id)
                part(writer, target, event)
            return len(wanted)


def part(writer: Writer, collection_id: int, event: StoredEvent) -> None:
    """Undo one merge, which counts no more; what was merged into the other entity before stays with that."""
    other, root = event.other_id, event.entity_id
    if other is None or root is None:
        return
    own = [joined.other_id for joined in events.merges(writer, collection_id, [other])]
    before = beliefs.keys_of(writer, collection_id, view.facts_of_entities(writer, collection_id, [root]))
    changed = events.stand_for(writer, collection_id, [other], None)
    changed += events.stand_for(writer, collection_id, [one for one in own if one is not None], other)
    learn.settle(writer, collection_id, before | beliefs.keys_of(writer, collection_id, changed))


def _join(writer: Writer, collection_id: int, other: int, root: int) -> None:
    before = beliefs.keys_of(writer, collection_id, view.facts_of_entities(writer, collection_id, [other]))
    members = [other, *view.members(writer, collection_id, [other])]
    changed = events.stand_for(writer, collection_id, members, root)
    learn.settle(writer, collection_id, before | beliefs.keys_of(writer, collection_id, changed))
