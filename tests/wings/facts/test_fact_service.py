"""Facts that callers state and judge: what is believed, what is closed, and what is taken back."""

from datetime import date

import pytest

from engram.composition.container import Application
from engram.context.errors import IdempotencyConflictError, InvalidRequestError, NotFoundError
from engram.services.auth.scope import Scope
from engram.storage.corpus import collections
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.parts import facts_of
from engram.wings.facts.services.fact_search import FactPattern
from engram.wings.facts.services.fact_service import Revision, StatedFact
from engram.wings.facts.storage import fact_rows
from engram.wings.history.parts import history_of
from tests.support import past, undo


def day(year: int) -> int:
    return date(year, 1, 1).toordinal()


def triple(subject: str, predicate: str, object_: str, start: int | None = None, end: int | None = None) -> Triple:
    first, last = (None if year is None else day(year) for year in (start, end))
    return Triple(subject, predicate, object_, 0, "entity", first, last, 1.0)


@pytest.fixture
def scope(application: Application, collection: str) -> Scope:
    application.corpus.ingest.receive(application.auth.access.prepare_opening(collection)).add([], [])
    return application.auth.access.scope(collection)


def state(
    application: Application, scope: Scope, source: str, *triples: Triple, graph: str | None = None
) -> list[int]:
    stated = [StatedFact(one) for one in triples]
    return list(facts_of(application).facts.state(scope, stated, source=source, graph_name=graph).facts)


def rows(application: Application, scope: Scope, *facts: int) -> list[fact_rows.FactRow]:
    with application.database.read() as reader:
        found = fact_rows.load_facts(reader, scope.collection.id, facts)
    return [found[fact] for fact in facts]


def test_sources_that_repeat_a_fact_make_it_surer(application: Application, scope: Scope) -> None:
    born = triple("Marie Curie", "place of birth", "Warsaw")
    (fact,) = state(application, scope, "a", born)
    (once,) = rows(application, scope, fact)
    assert state(application, scope, "a", born) == [fact]
    assert rows(application, scope, fact)[0].belief == once.belief == pytest.approx(2 / 3)
    assert state(application, scope, "b", born) == [fact]
    assert rows(application, scope, fact)[0].belief > once.belief


def test_two_sources_disagree_a_verdict_decides_and_the_past_stays_askable(
    application: Application, scope: Scope
) -> None:
    facts_of(application).predicates.declare(scope, "place of birth", True, None)
    (right,) = state(application, scope, "a", triple("Marie Curie", "place of birth", "Warsaw"))
    (wrong,) = state(application, scope, "b", triple("Marie Curie", "place of birth", "Paris"))
    first, second = rows(application, scope, right, wrong)
    assert first.belief == pytest.approx(second.belief, abs=1e-3)
    with application.database.read() as reader:
        moment = reader.scalar("SELECT clock_timestamp()")
    facts_of(application).facts.revise(scope, [Revision("confirm", right)], judge="ana", key="1")
    first, second = rows(application, scope, right, wrong)
    assert first.belief > 0.7
    assert second.belief == pytest.approx(1 / 3, abs=1e-2)
    question = FactPattern(question="Where was Marie Curie born?")
    found = facts_of(application).fact_search.search(scope, question)
    assert [path.facts for path in found.paths] == [(right,), (wrong,)]
    assert "Paris (doubted)" in found.text
    then = facts_of(application).fact_search.search(
        scope, FactPattern(question="Where was Marie Curie born?", as_of=moment)
    )
    assert then.beliefs[wrong] == pytest.approx(then.beliefs[right], abs=1e-3)


def test_a_later_holder_ends_the_one_before_who_is_still_found_for_his_time(
    application: Application, scope: Scope
) -> None:
    facts_of(application).predicates.declare(scope, "mayor", True, None)
    (old,) = state(application, scope, "a", triple("Cologne", "mayor", "Fritz Schramma", 2000))
    (new,) = state(application, scope, "b", triple("Cologne", "mayor", "Jürgen Roters", 2009))
    ended, _ = rows(application, scope, old, new)
    assert (ended.held_until, ended.superseded_by, ended.closed_reason) == (day(2009), new, "superseded")
    now = facts_of(application).fact_search.search(scope, FactPattern(subject="Cologne", predicate="mayor"))
    assert list(now.facts) == [new]
    then = facts_of(application).fact_search.search(
        scope, FactPattern(question="Who was mayor of Cologne in 2004?")
    )
    assert list(then.facts) == [old]
    both = facts_of(application).fact_search.search(scope, FactPattern(subject="Cologne", include_closed=True))
    assert set(both.facts) == {old, new}


def test_a_revision_counts_once_and_revoking_it_restores_what_was(application: Application, scope: Scope) -> None:
    (fact,) = state(application, scope, "a", triple("Marie Curie", "spouse", "Pierre Curie"))
    before = rows(application, scope, fact)
    revisions = [Revision("contradict", fact, confidence=0.5)]
    (applied,) = facts_of(application).facts.revise(scope, revisions, judge="ana", key="1")
    after = rows(application, scope, fact)
    assert after != before
    (again,) = facts_of(application).facts.revise(scope, revisions, judge="ana", key="1")
    assert again.event.id == applied.event.id
    assert rows(application, scope, fact) == after
    with pytest.raises(IdempotencyConflictError):
        facts_of(application).facts.revise(scope, [Revision("confirm", fact)], judge="ana", key="1")
    assert facts_of(application).retractions.revoke(scope, applied.event.id).status == "revoked"
    assert facts_of(application).retractions.revoke(scope, applied.event.id).status == "revoked"
    assert rows(application, scope, fact) == before


def test_revoked_assertion_removes_facts_that_only_it_states(application: Application, scope: Scope) -> None:
    shared, own = triple("Curie", "spouse", "Pierre"), triple("Curie", "field", "physics")
    (fact,) = state(application, scope, "a", shared)
    before = rows(application, scope, fact)
    applied = facts_of(application).facts.state(scope, [StatedFact(shared), StatedFact(own)], source="b")
    facts_of(application).retractions.revoke(scope, applied.event.id)
    assert rows(application, scope, fact) == before
    with application.database.read() as reader:
        assert fact_rows.load_facts(reader, scope.collection.id, applied.facts).keys() == {fact}
        kept = reader.rows(
            "SELECT name FROM fact_entity WHERE collection_id = %(id)s ORDER BY name", {"id": scope.collection.id}
        )
    assert [row.name for row in kept] == ["curie", "pierre"]


def test_closed_and_superseded_facts_show_reason_and_end(application: Application, scope: Scope) -> None:
    old, new = state(application, scope, "a", triple("Acme", "chair", "Ana"), triple("Acme", "chair", "Ben", 2015))
    facts_of(application).facts.revise(scope, [Revision("supersede", old, by=new)], judge="ana", key="1")
    (row,) = rows(application, scope, old)
    assert (row.superseded_by, row.held_until, row.closed_reason) == (new, day(2015), "superseded")
    with pytest.raises(InvalidRequestError):
        facts_of(application).facts.revise(scope, [Revision("supersede", old, by=old)], judge="ana", key="2")
    with pytest.raises(NotFoundError):
        facts_of(application).facts.revise(scope, [Revision("confirm", 10**9)], judge="ana", key="3")


def test_entities_that_are_merged_share_their_facts_until_they_are_split(
    application: Application, scope: Scope
) -> None:
    facts_of(application).predicates.declare(scope, "place of birth", True, None)
    one, other = state(
        application,
        scope,
        "a",
        triple("Marie Curie", "place of birth", "Warsaw"),
        triple("Maria Skłodowska", "place of birth", "Paris"),
    )
    before = rows(application, scope, one, other)
    first, second = (row.subject_id for row in before)
    facts_of(application).entity_merges.merge(scope, first, [second], judge="ana", key="1")
    merged = rows(application, scope, one, other)
    assert [row.subject_id for row in merged] == [first, first]
    assert merged[0].belief < before[0].belief  # they compete now
    found = facts_of(application).fact_search.search(scope, FactPattern(entities=["Maria Skłodowska"]))
    assert set(found.facts) == {one, other}
    assert facts_of(application).entity_merges.split(scope, first) == 1
    assert rows(application, scope, one, other) == before


def test_a_graph_of_its_own_is_apart(application: Application, scope: Scope) -> None:
    (fact,) = state(application, scope, "a", triple("Curie", "spouse", "Pierre"), graph="mine")
    assert list(
        facts_of(application).fact_search.search(scope, FactPattern(entities=["Curie"], graph="mine")).facts
    ) == [fact]
    assert facts_of(application).fact_search.search(scope, FactPattern(entities=["Curie"])).starts == {}
    with pytest.raises(NotFoundError):
        facts_of(application).fact_search.search(scope, FactPattern(entities=["Curie"], graph="other"))


def test_counts_make_a_predicate_functional_and_its_facts_compete(application: Application, scope: Scope) -> None:
    triples = [triple(f"Person {n}", "place of birth", f"Place {n}") for n in range(80)]
    state(application, scope, "a", *triples)
    (fact, *_) = state(application, scope, "b", triple("Person 0", "place of birth", "Elsewhere"))
    (before,) = rows(application, scope, fact)
    (counted,) = facts_of(application).predicates.count(scope)
    assert (counted.functional, counted.subjects, counted.single) == (True, 80, 79)
    assert rows(application, scope, fact)[0].belief < before.belief


def test_lines_stay_within_their_budget_and_cite(application: Application, scope: Scope) -> None:
    state(application, scope, "a", *(triple("Hub", "links to", f"Place {n}") for n in range(40)))
    found = facts_of(application).fact_search.search(scope, FactPattern(entities=["Hub"], budget=60, paths=40))
    assert 0 < found.tokens <= 60
    assert 0 < len(found.facts) < 40
    assert found.text.startswith("Hub | links to: Place 0 [1]")
    assert found.citations[0].text == "Hub links to Place 0"


def test_a_copy_of_a_past_moment_believes_what_was_believed_then(application: Application, scope: Scope) -> None:
    facts_of(application).predicates.declare(scope, "place of birth", True, None)
    one, other = state(
        application,
        scope,
        "a",
        triple("Marie Curie", "place of birth", "Warsaw"),
        triple("Maria Skłodowska", "place of birth", "Paris"),
    )
    first, second = (row.subject_id for row in rows(application, scope, one, other))
    facts_of(application).entity_merges.merge(scope, first, [second], judge="ana", key="1")
    (event,) = facts_of(application).facts.revise(scope, [Revision("confirm", one)], judge="ana", key="2")
    then = rows(application, scope, one, other)
    until = past.now(application)
    facts_of(application).retractions.revoke(scope, event.event.id)
    facts_of(application).entity_merges.split(scope, first)
    (later,) = state(application, scope, "b", triple("Curie", "spouse", "Pierre"))
    copy = f"{scope.collection.name}-then"
    with application.database.read() as reader:
        source = collections.load_by_id(reader, scope.collection.id)
    history_of(application).past.make(source, until, copy)
    copied = application.auth.access.scope(copy)
    assert rows(application, copied, one, other) == then
    with application.database.read() as reader:
        assert later not in fact_rows.load_facts(reader, copied.collection.id, [later])
    undo.assert_verified(application, copy)
