"""New names that mean entities: joined by alias or by similarity in their neighbourhood, and taken apart again."""

from engram.composition.container import Application
from engram.services.auth.scope import Scope
from engram.wings.facts.parts import facts_of
from engram.wings.facts.services.fact_search import FactPattern
from engram.wings.facts.services.fact_service import StatedFact
from tests.support import state as stored
from tests.support import undo
from tests.wings.facts.test_fact_service import rows, state, triple
from tests.wings.facts.test_fact_service import scope as scope  # noqa: PLC0414


def merges(application: Application, scope: Scope) -> list[tuple[str, str]]:
    return [
        (row["judge"], row["reason"])
        for row in stored.rows(application, scope.collection.name, "fact_event")
        if row["kind"] == "merge"
    ]


def test_short_name_joins_the_full_name_of_the_same_source(application: Application, scope: Scope) -> None:
    full, short = state(
        application,
        scope,
        "a",
        triple("Edward James Solomon", "employer", "Acme"),
        triple("Ed Solomon", "spouse", "Cynthia Cleese"),
    )
    one, other = rows(application, scope, full, short)
    assert one.subject_id == other.subject_id
    ((judge, reason),) = merges(application, scope)
    assert judge == "alignment"
    assert reason.startswith("similarity 0.")
    undo.assert_verified(application, scope.collection.name)
    assert facts_of(application).entity_merges.split(scope, one.subject_id) == 1
    apart = rows(application, scope, full, short)
    assert apart[0].subject_id != apart[1].subject_id
    assert facts_of(application).alignment.align_all(scope) == []  # what was taken apart stays so
    undo.assert_verified(application, scope.collection.name)


def test_namesakes_and_strangers_stay_apart(application: Application, scope: Scope) -> None:
    state(application, scope, "a", triple("Edward James Solomon", "employer", "Acme"))
    state(application, scope, "b", triple("Ed Solomon", "employer", "Globex"))  # elsewhere
    state(
        application,
        scope,
        "c",
        triple("George II of Ruritania", "father", "George I"),
        triple("George III of Ruritania", "father", "George II"),
    )
    state(
        application,
        scope,
        "d",
        triple("Thomas Carr", "date of birth", "1900"),
        triple("Thomas A. Carr", "date of birth", "1950"),
    )
    assert merges(application, scope) == []


def test_names_that_one_sentence_tells_apart_are_two(application: Application, scope: Scope) -> None:
    words = "Ann is the daughter of Edward James Solomon and the sister of Ed Solomon."
    said = [triple("Ann", "father", "Edward James Solomon"), triple("Ann", "sibling", "Ed Solomon")]
    facts_of(application).facts.state(scope, [StatedFact(one, words) for one in said], source="a")
    facts_of(application).facts.state(scope, [StatedFact(triple("Sir Leo Falk", "father", "Leo Falk"))], source="b")
    assert merges(application, scope) == []
    facts_of(application).facts.state(
        scope, [StatedFact(triple("Bea Falk", "spouse", "Sir Ivo Falk"), "Married.")], source="c"
    )
    both = [
        StatedFact(triple("Ivo Falk", "chair", "Acme"), "Chairs."),
        StatedFact(triple("Sir Ivo Falk", "is", "old"), "Old."),
    ]
    facts_of(application).facts.state(scope, both, source="c")
    assert len(merges(application, scope)) == 1


def test_another_name_of_one_entity_alone_is_that_entity(application: Application, scope: Scope) -> None:
    (known,) = state(application, scope, "a", triple("Acme", "also known as", "Consolidated Anvils"))
    (later,) = state(application, scope, "b", triple("Consolidated Anvils", "chair", "Ana"))
    assert rows(application, scope, later)[0].subject_id == rows(application, scope, known)[0].subject_id
    assert merges(application, scope) == [("alignment", "alias")]
    found = facts_of(application).fact_search.search(scope, FactPattern(question="What is Acme also known as?"))
    assert found.facts[known].object == "Consolidated Anvils"


def test_a_name_that_was_there_first_is_what_a_later_fact_says_it_is(
    application: Application, scope: Scope
) -> None:
    (first,) = state(application, scope, "a", triple("Consolidated Anvils", "chair", "Ana"))
    (later,) = state(application, scope, "b", triple("Acme", "also known as", "Consolidated Anvils"))
    assert rows(application, scope, first)[0].subject == rows(application, scope, later)[0].subject == "Acme"
    state(application, scope, "c", triple("Globex", "also known as", "Consolidated Anvils"))
    assert merges(application, scope) == [("alignment", "alias")]  # of two, nobody knows which is meant


def test_unaligned_entities_are_joined_on_request(application: Application, scope: Scope) -> None:
    both = triple("Ed Solomon", "spouse", "Cynthia Cleese"), triple("Acme", "chair", "Bea Falk")
    state(application, scope, "a", *both)
    (entity,) = (
        r["id"] for r in stored.rows(application, scope.collection.name, "fact_entity") if r["tail"] == "solomon"
    )
    with application.database.write() as writer:
        writer.execute(
            "INSERT INTO fact_entity (collection_id, name, bare, tail, surface) "
            "VALUES (%(c)s, 'edward solomon', 'edward solomon', 'solomon', 'Edward Solomon')",
            {"c": scope.collection.id},
        )
        writer.execute(
            "UPDATE fact SET named_object_id = e.id, object_id = e.id FROM fact_entity e "
            "WHERE e.collection_id = %(c)s AND fact.collection_id = %(c)s "
            "AND e.name = 'edward solomon' AND fact.predicate = 'chair'",
            {"c": scope.collection.id},
        )
    (told,) = facts_of(application).alignment.align_all(scope, preview=True)
    assert {told.joining_name, told.staying_name} == {"Ed Solomon", "Edward Solomon"}
    assert merges(application, scope) == []
    assert facts_of(application).alignment.align_all(scope) == [told]
    assert len(merges(application, scope)) == 1
    assert entity in {told.joining, told.staying}
