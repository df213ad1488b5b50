"""Strict parsing of replies about facts: listed names, numbered sentences and facts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from engram.providers.llm.replies import Line, Reply, UnusableReplyError, distinct, read

MOST_ENTITIES = 200
"""Names of one text; what a list has beyond them is left out."""
MOST_RELATIONS = 300
"""Facts of one reply, likewise."""
MAX_RELATION_WORDS = 6

_Name = Annotated[Line, Field(min_length=1, max_length=200)]
_Relation = Annotated[Line, Field(min_length=1, max_length=100)]


@dataclass(frozen=True, slots=True)
class Relation:
    """A fact as the model gave it; ``sentence`` is the id of the one that says so, None where none was asked."""

    subject: str
    relation: str
    object: str
    sentence: int | None


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Changes of a correction: positions of contradicted facts, and facts to add."""

    remove: tuple[int, ...]
    add: tuple[Relation, ...]


class _EntitiesReply(Reply):
    entities: list[_Name]


class _Added(Reply):
    subject: _Name
    relation: _Relation
    object: _Name


class _ExtractedFact(_Added):
    sentence: int


class _RelationsReply(Reply):
    facts: list[_ExtractedFact]


class _MaintenanceReply(Reply):
    remove: list[int]
    add: list[_Added]


def read_entities(text: str) -> list[str]:
    """The names, each once, whatever its case; maybe none."""
    return distinct(read(_EntitiesReply, text).entities)[:MOST_ENTITIES]


def read_relations(text: str, entities: Sequence[str], ids: Sequence[int]) -> list[Relation]:
    """The facts; ``ids[n - 1]`` is the id behind sentence number ``n``.

    Raises:
        UnusableReplyError: a fact names what is not in the list, or a sentence that there is not.
    """
    known = {entity.casefold(): entity for entity in entities}
    facts: dict[Relation, None] = {}
    for fact in read(_RelationsReply, text).facts[:MOST_RELATIONS]:
        for part, name in (("subject", fact.subject), ("object", fact.object)):
            if name.casefold() not in known:
                raise UnusableReplyError(f"facts: a {part} is not in the list of names")
        if not 1 <= fact.sentence <= len(ids):
            raise UnusableReplyError(
                f"facts: {fact.sentence} is not a sentence number, they run from 1 to {len(ids)}"
            )
        subject, thing = known[fact.subject.casefold()], known[fact.object.casefold()]
        if subject != thing:
            facts[Relation(subject, _predicate(fact.relation), thing, ids[fact.sentence - 1])] = None
    return list(facts)


def read_maintenance(text: str, known: int) -> Maintenance:
    """Parse the facts to remove, as positions from 0, and the facts to add.

    Raises:
        UnusableReplyError: a number stands for no fact.
    """
    reply = read(_MaintenanceReply, text)
    unknown = [number for number in reply.remove if not 1 <= number <= known]
    if unknown:
        raise UnusableReplyError(f"remove: {unknown[0]} is not the number of a fact, they run from 1 to {known}")
    added = [
        Relation(fact.subject, _predicate(fact.relation), fact.object, None) for fact in reply.add[:MOST_RELATIONS]
    ]
    return Maintenance(
        tuple(number - 1 for number in dict.fromkeys(reply.remove)),
        tuple(dict.fromkeys(fact for fact in added if fact.subject.casefold() != fact.object.casefold())),
    )


def _predicate(relation: str) -> str:
    """Lower case and short.

    Raises:
        UnusableReplyError: it is a sentence rather than a relation.
    """
    words = relation.casefold().replace("_", " ").split()
    if not 0 < len(words) <= MAX_RELATION_WORDS:
        raise UnusableReplyError(f"relation: {len(words)} words; at most {MAX_RELATION_WORDS} are a relation")
    return " ".join(words)
