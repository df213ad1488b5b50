"""A passage's key, to look at: how far it evolved, what it is composed of, and the questions behind that."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from engram.context.errors import NotFoundError
from engram.core.auth.access_keys import AUDIT
from engram.core.passage_keys.key_text import KeyBuilding
from engram.services.auth.scope import Scope
from engram.storage.database import Database
from engram.wings.published.core import evolution as core
from engram.wings.published.core.evolution import KeyRules
from engram.wings.published.storage import key_generations, key_history
from engram.wings.published.storage.key_history import HeldUnit, ServedKey, UnitEvent

EVENTS = 20
"""Verdicts that are shown of a unit, the latest."""

TERMS = 50
"""Terms that are shown of a unit and of a key, those added most."""


@dataclass(frozen=True, slots=True)
class AddedTerm:
    """By how much a term's frequency in the passage's lexical key was raised."""

    term: str
    increment: float


@dataclass(frozen=True, slots=True)
class UnitView:
    """A unit of a passage's expansion memory.

    Attributes:
        score: by all verdicts that count, those that wait included; None for a unit of the serving key that the
            memory let go for better ones, which wait.
        in_key: whether the serving key is composed of it, among others.
        terms: what it adds to the serving lexical key, ``TERMS`` of them at most.
        events: the latest verdicts behind it, ``EVENTS`` of ``event_count`` at most.
    """

    unit_id: int
    method: str
    text: str
    score: float | None
    in_key: bool
    terms: Sequence[AddedTerm]
    events: Sequence[UnitEvent]
    event_count: int


@dataclass(frozen=True, slots=True)
class KeyView:
    """A passage's key as it serves.

    Attributes:
        generation: the collection's serving generation; 0: base keys serve.
        key_generation: the latest evolution that took in evidence for this key; None for a base key.
        cosine, displacement: of the serving key and the base key; 1 and 0 for a base key.
        displacement_bound: what the displacement cannot exceed.
        terms: what the key adds to the passage's term frequencies, ``TERMS`` of ``term_count`` at most.
        units: best first, of ``unit_count``.
    """

    passage_id: str
    collection: str
    generation: int
    evolved: bool
    key_generation: int | None
    key_building: KeyBuilding
    cosine: float
    displacement: float
    displacement_bound: float
    terms: Sequence[AddedTerm]
    term_count: int
    units: Sequence[UnitView]
    unit_count: int


class KeyViewService:
    """Reads keys and changes none."""

    def __init__(self, database: Database, rules: KeyRules) -> None:
        self._database = database
        self._rules = rules

    def view(self, scope: Scope, passage: str, limit: int) -> KeyView:
        """The key of the passage with this external id, and the ``limit`` best units of its expansion memory.

        Units and terms are words of questions: where passages have readers, they are left out without ``audit``.

        Raises:
            NotFoundError: there is no such passage.
        """
        target = scope.collection
        with self._database.read() as reader:
            key = key_history.find(reader, target.id, passage)
            if key is None:
                raise NotFoundError(f"There is no passage {passage!r} in collection {target.name!r}.")
            words = reader.reader_sets is None or scope.is_allowed(AUDIT)
            serving = key_generations.find(reader, target.id, target.key_generation)
            units, unit_count = key_history.units(
                reader, target.id, key.passage_id, key.units, limit if words else 0
            )
            terms, term_count = key_history.list_added_terms(
                reader, target.id, key.passage_id, TERMS if words else 0
            )
            sources = key_history.sources(reader, target.id, key.passage_id, [unit.id for unit in units], EVENTS)
        rules = KeyRules(**serving.rules) if serving else self._rules
        behind = {unit: list(group) for unit, group in groupby(sources, key=lambda source: source.unit_id)}
        vector = key.base if key.vector is None else key.vector
        return KeyView(
            passage_id=passage,
            collection=target.name,
            generation=target.key_generation,
            evolved=key.vector is not None,
            key_generation=key.generation,
            key_building=target.key_building,
            cosine=float(key.base @ vector),
            displacement=float(np.linalg.norm(vector - key.base)),
            displacement_bound=core.compute_displacement_bound(rules.strength),
            terms=[AddedTerm(*term) for term in terms],
            term_count=term_count,
            units=[_unit(unit, key, rules, behind.get(unit.id, [])) for unit in units],
            unit_count=unit_count,
        )


def _unit(unit: HeldUnit, key: ServedKey, rules: KeyRules, events: Sequence[UnitEvent]) -> UnitView:
    return UnitView(
        unit_id=unit.id,
        method=unit.method,
        text=unit.text,
        score=unit.score,
        in_key=unit.id in key.units,
        terms=_terms(unit, key, rules) if unit.id in key.units else [],
        events=events,
        event_count=events[0].event_count if events else 0,
    )


def _terms(unit: HeldUnit, key: ServedKey, rules: KeyRules) -> list[AddedTerm]:
    """The unit's part of what the key's units add together: the others keep their share, without their terms."""
    units = [unit.frequencies if other == unit.id else {} for other in key.units]
    added = core.compose_terms(key.length, units, key.scores, rules.term_strength)
    best = sorted(added.items(), key=lambda term: (-term[1], term[0]))[:TERMS]
    return [AddedTerm(*term) for term in best]
