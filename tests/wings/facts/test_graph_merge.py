"""A graph of facts merged into another: all that was said, each once, and taken back as one."""

import pytest

from engram.composition.container import Application
from engram.context.errors import IdempotencyConflictError, InvalidRequestError, NotFoundError
from engram.services.auth.scope import Scope
from engram.wings.facts.parts import facts_of
from engram.wings.facts.services.fact_search import FactPattern
from engram.wings.facts.services.fact_service import Revision
from engram.wings.facts.storage.fact_rows import FactRow
from tests.support import state as stored
from tests.support import undo
from tests.wings.facts.test_fact_service import rows, state, triple
from tests.wings.facts.test_fact_service import scope as scope  # noqa: PLC0414


def map_facts(application: Application, scope: Scope, graph: str | None = None) -> dict[tuple[str, str], FactRow]:
    """(Predicate, object) -> the fact of a graph."""
    found = facts_of(application).fact_search.search(
        scope, FactPattern(entities=["Acme"], graph=graph, include_closed=True, paths=50, budget=5_000)
    )
    return {(row.predicate, row.object): row for row in found.facts.values()}


def numbers(row: FactRow) -> tuple[float, float, int, int, str | None]:
    return row.belief, row.perplexity, row.observations, row.held_until, row.closed_reason


def test_in_an_empty_graph_the_same_is_believed(application: Application, scope: Scope) -> None:
    one, other = state(
        application, scope, "a", triple("Acme", "chair", "Ana"), triple("Acme", "seat", "Oslo"), graph="g"
    )
    facts_of(application).facts.revise(
        scope, [Revision("contradict", one), Revision("close", other)], judge="ana", key="1"
    )
    state(application, scope, "b", triple("Acme", "chair", "Ana"), graph="g")
    done = facts_of(application).graph_merges.merge(scope, "g", judge="ana", key="m")
    assert (len(done.facts), done.sentences, done.verdicts, done.joins) == (2, 3, 2, 0)
    there, here = map_facts(application, scope, "g"), map_facts(application, scope)
    assert {name: numbers(row) for name, row in here.items()} == {n: numbers(row) for n, row in there.items()}
    undo.assert_verified(application, scope.collection.name)


def test_a_source_that_both_have_counts_once_and_what_cannot_both_hold_competes(
    application: Application, scope: Scope
) -> None:
    facts_of(application).predicates.declare(scope, "chair", True, None)
    (own,) = state(application, scope, "a", triple("Acme", "chair", "Ana"))
    (before,) = rows(application, scope, own)
    state(application, scope, "a", triple("Acme", "chair", "Ana"), graph="g")
    facts_of(application).graph_merges.merge(scope, "g", judge="ana", key="1")
    assert rows(application, scope, own)[0].belief == before.belief
    state(application, scope, "b", triple("Acme", "chair", "Ben"), graph="g")
    done = facts_of(application).graph_merges.merge(scope, "g", judge="ana", key="2")
    assert (len(done.facts), done.sentences) == (1, 1)
    assert rows(application, scope, own)[0].belief < before.belief
    facts_of(application).retractions.revoke(scope, done.event.id)
    assert rows(application, scope, own)[0].belief == before.belief
    undo.assert_verified(application, scope.collection.name)


def test_merge_is_done_once_and_revoked_as_one(application: Application, scope: Scope) -> None:
    (fact,) = state(application, scope, "a", triple("Acme", "seat", "Oslo"))
    before = {table: stored.rows(application, scope.collection.name, table) for table in ("fact", "fact_entity")}
    one, other = state(
        application, scope, "b", triple("Acme", "chair", "Ana"), triple("Globex", "chair", "Eve"), graph="g"
    )
    first, second = (row.subject_id for row in rows(application, scope, one, other))
    facts_of(application).entity_merges.merge(scope, first, [second], judge="ana", key="j")
    facts_of(application).facts.revise(scope, [Revision("confirm", one)], judge="ana", key="r")
    apart = {table: stored.rows(application, scope.collection.name, table) for table in before}
    done = facts_of(application).graph_merges.merge(scope, "g", judge="ana", key="m")
    assert (len(done.facts), done.sentences, done.verdicts, done.joins) == (2, 2, 1, 1)
    assert set(map_facts(application, scope)) == {("seat", "Oslo"), ("chair", "Ana"), ("chair", "Eve")}
    assert facts_of(application).graph_merges.merge(scope, "g", judge="ana", key="m") == done
    with pytest.raises(IdempotencyConflictError):
        facts_of(application).graph_merges.merge(scope, "g", "h", judge="ana", key="m")
    again = facts_of(application).graph_merges.merge(scope, "g", judge="ana", key="n")
    assert (again.facts, again.sentences, again.verdicts, again.joins) == ([], 0, 0, 0)
    undo.assert_verified(application, scope.collection.name)
    facts_of(application).retractions.revoke(scope, done.event.id)
    assert {table: stored.rows(application, scope.collection.name, table) for table in before} == apart
    assert rows(application, scope, fact)
    third = facts_of(application).graph_merges.merge(scope, "g", judge="ana", key="o")
    assert (third.sentences, third.verdicts, third.joins) == (2, 1, 1)
    undo.assert_verified(application, scope.collection.name)


def test_revocation_reaches_merged_verdicts(application: Application, scope: Scope) -> None:
    (fact,) = state(application, scope, "a", triple("Acme", "chair", "Ana"), graph="g")
    (judged,) = facts_of(application).facts.revise(scope, [Revision("confirm", fact)], judge="ana", key="r")
    facts_of(application).graph_merges.merge(scope, "g", judge="ana", key="m")
    confirmed = map_facts(application, scope)["chair", "Ana"].belief
    facts_of(application).retractions.revoke(scope, judged.event.id)
    assert map_facts(application, scope)["chair", "Ana"].belief < confirmed
    for row in stored.rows(application, scope.collection.name, "fact_event"):
        if row["kind"] == "assert":
            facts_of(application).retractions.revoke(scope, row["id"])
    assert stored.rows(application, scope.collection.name, "fact_statement") == []
    assert map_facts(application, scope) == {}


def test_graphs_that_there_are_not_or_that_are_one(application: Application, scope: Scope) -> None:
    with pytest.raises(NotFoundError):
        facts_of(application).graph_merges.merge(scope, "none", judge="ana", key="1")
    state(application, scope, "a", triple("Acme", "chair", "Ana"), graph="g")
    with pytest.raises(InvalidRequestError):
        facts_of(application).graph_merges.merge(scope, "g", "g", judge="ana", key="2")
    facts_of(application).graph_merges.merge(scope, "g", "h", judge="ana", key="3")
    assert set(map_facts(application, scope, "h")) == {("chair", "Ana")}
    assert map_facts(application, scope) == {}


def test_a_source_called_as_a_passage_is_that_passage_and_goes_with_it(
    application: Application, collection: str
) -> None:
    stored.stage_passages(application, collection, {"id": "page", "text": "Ana chairs Acme."})
    application.jobs.runner.run_ready()
    scope = application.auth.access.scope(collection)
    state(application, scope, "page", triple("Acme", "chair", "Ana"), graph="g")
    facts_of(application).graph_merges.merge(scope, "g", judge="ana", key="1")
    assert {row["passage_id"] for row in stored.rows(application, collection, "fact_source")} != {None}
    application.corpus.ingest.delete_passage(scope, "page")
    for table in ("fact", "fact_source", "fact_statement", "fact_entity"):
        assert stored.rows(application, collection, table) == []
