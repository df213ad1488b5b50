"""Predicates of which a subject has one object at a time: declared, or learned from counts."""

from collections.abc import Iterable, Mapping

from engram.services.auth.scope import Scope
from engram.storage.database import Database, Writer
from engram.wings.facts.core.functional_predicates import FROM_THE_START, OneAtATime
from engram.wings.facts.services import fact_learning
from engram.wings.facts.services.fact_transaction import begin_change, find_graph_id
from engram.wings.facts.storage import belief_groups, predicates
from engram.wings.facts.storage.predicates import Predicate


class PredicatesService:
    """Says which predicates are functional; facts of one that becomes so, or is no more, are believed anew."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def declare(self, scope: Scope, predicate: str, is_single: bool | None, graph: str | None) -> Predicate:
        """Say whether a subject has one object at a time under a predicate; None: let counts say.

        Raises:
            NotFoundError: there is no such graph, or the collection was deleted meanwhile.
        """
        with begin_change(self._database, scope) as (writer, target):
            graph_id = find_graph_id(writer, target, graph)
            name = " ".join(predicate.casefold().split())
            known = predicates.find(writer, target, graph_id).get(name, _build_unknown_predicate(name))
            effective = _is_functional(name, known.subjects, known.single) if is_single is None else is_single
            new = Predicate(name, is_single, effective, known.subjects, known.single)
            _change(writer, target, graph_id, {name: known}, [new])
        return new

    def count(self, scope: Scope, graph: str | None = None) -> list[Predicate]:
        """Count how often a subject has one object at a time, and have predicates of which it is so be functional.

        Raises:
            NotFoundError: there is no such graph, or the collection was deleted meanwhile.
        """
        with begin_change(self._database, scope) as (writer, target):
            graph_id = find_graph_id(writer, target, graph)
            known = predicates.find(writer, target, graph_id)
            learned = []
            for name, (subjects, single) in sorted(predicates.count(writer, target, graph_id).items()):
                was = known.get(name, _build_unknown_predicate(name))
                effective = _is_functional(name, subjects, single) if was.declared is None else was.declared
                learned.append(Predicate(name, was.declared, effective, subjects, single))
            _change(writer, target, graph_id, known, learned)
        return learned


def _build_unknown_predicate(name: str) -> Predicate:
    return Predicate(name, None, name in FROM_THE_START, 0, 0)


def _is_functional(name: str, subjects: int, single: int) -> bool:
    return name in FROM_THE_START or OneAtATime(single, subjects - single).is_functional


def _change(
    writer: Writer,
    target: int,
    graph_id: int,
    stored_predicates: Mapping[str, Predicate],
    learned: Iterable[Predicate],
) -> None:
    """Store predicates, and replay the facts of those that changed."""
    new = list(learned)
    if not new:
        return
    was = {name for name, one in stored_predicates.items() if one.functional}
    was |= FROM_THE_START - stored_predicates.keys()
    changed = [one.predicate for one in new if one.functional != (one.predicate in was)]
    predicates.put(writer, target, graph_id, new)
    if changed:
        facts = belief_groups.list_by_predicate(writer, target, graph_id, changed)
        fact_learning.settle(writer, target, belief_groups.find_keys(writer, target, facts))
