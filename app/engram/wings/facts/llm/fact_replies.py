"""Strict parsing of replies about facts: listed names, numbered sentences and facts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import AliasChoices, Field

from engram.core.text.words import words
from engram.providers.llm.replies import Line, Number, Reply, UnusableReplyError, read, select_distinct

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
class FactCorrection:
    """Changes of a correction: positions of contradicted facts, and facts to add."""

    remove: tuple[int, ...]
    add: tuple[Relation, ...]


class EntitiesReply(Reply):
    """Names in a text; also a bare list of them (GRAM, Fig. 6)."""

    grounded: ClassVar[bool] = True
    bare_list: ClassVar[str | None] = "entities"
    entities: list[_Name]


class _FactReply(Reply):
    subject: _Name
    relation: _Relation = Field(validation_alias=AliasChoices("relation", "predicate"))
    object: _Name


class _ExtractedFact(_FactReply):
    sentence: Number


class RelationsReply(Reply):
    """Facts of a text; also a bare list of them (GRAM, Fig. 6)."""

    grounded: ClassVar[bool] = True
    bare_list: ClassVar[str | None] = "facts"
    facts: list[_ExtractedFact]


class MaintenanceReply(Reply):
    """Numbers of facts to remove, and facts to add."""

    grounded: ClassVar[bool] = True
    remove: list[Number]
    add: list[_FactReply]


def read_entities(text: str, source: str) -> list[str]:
    """The names that stand in the ``source``, each once, whatever its case; maybe none.

    A weak model lists the prompt's examples too.
    """
    source_words = set(words(source))
    names = select_distinct(read(EntitiesReply, text).entities)
    return [name for name in names if set(words(name)) <= source_words][:MOST_ENTITIES]


def read_relations(text: str, entities: Sequence[str], ids: Sequence[int]) -> list[Relation]:
    """The facts; ``ids[n - 1]`` is the id behind sentence number ``n``.

    Raises:
        UnusableReplyError: a fact names what is not in the list, or a sentence that there is not.
    """
    entity_by_name = {entity.casefold(): entity for entity in entities}
    facts: dict[Relation, None] = {}
    for fact in read(RelationsReply, text).facts[:MOST_RELATIONS]:
        for part, name in (("subject", fact.subject), ("object", fact.object)):
            if name.casefold() not in entity_by_name:
                raise UnusableReplyError(f"facts: a {part} is not in the list of names")
        if not 1 <= fact.sentence <= len(ids):
            raise UnusableReplyError(
                f"facts: {fact.sentence} is not a sentence number, they run from 1 to {len(ids)}"
            )
        subject, thing = entity_by_name[fact.subject.casefold()], entity_by_name[fact.object.casefold()]
        if subject != thing:
            facts[Relation(subject, _predicate(fact.relation), thing, ids[fact.sentence - 1])] = None
    return list(facts)


def read_maintenance(text: str, facts: Sequence[tuple[str, str, str]], correction: str) -> FactCorrection:
    """Parse the facts to remove, as positions from 0, and the facts to add.

    A fact is removed only if the correction names one of its ends. A fact is added only if the correction names one
    end, and the correction or a fact the other.

    Raises:
        UnusableReplyError: a number stands for no fact.
    """
    reply = read(MaintenanceReply, text)
    unknown = [number for number in reply.remove if not 1 <= number <= len(facts)]
    if unknown:
        raise UnusableReplyError(
            f"remove: {unknown[0]} is not the number of a fact, they run from 1 to {len(facts)}"
        )
    correction_words = set(words(correction))
    known_words = correction_words.union(*(words(f"{subject} {thing}") for subject, _, thing in facts))
    added = [
        Relation(fact.subject, _predicate(fact.relation), fact.object, None)
        for fact in reply.add[:MOST_RELATIONS]
        if _contains_end(fact.subject, fact.object, correction_words)
        and {*words(fact.subject), *words(fact.object)} <= known_words
    ]
    removed = [
        number - 1
        for number in dict.fromkeys(reply.remove)
        if _contains_end(facts[number - 1][0], facts[number - 1][2], correction_words)
    ]
    return FactCorrection(
        tuple(removed),
        tuple(dict.fromkeys(fact for fact in added if fact.subject.casefold() != fact.object.casefold())),
    )


def _contains_end(subject: str, object_name: str, text_words: set[str]) -> bool:
    """Tell whether a text has all words of one end of a fact."""
    return any(set(words(end)) <= text_words for end in (subject, object_name))


def _predicate(relation: str) -> str:
    """Lower case and short.

    Raises:
        UnusableReplyError: it is a sentence rather than a relation.
    """
    parts = relation.casefold().replace("_", " ").split()
    if not 0 < len(parts) <= MAX_RELATION_WORDS:
        raise UnusableReplyError(f"relation: {len(parts)} words; at most {MAX_RELATION_WORDS} are a relation")
    return " ".join(parts)
