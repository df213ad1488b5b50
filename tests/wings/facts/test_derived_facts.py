"""Beliefs and joins of entities in the verification of a collection."""

from engram.composition.container import Application
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.parts import facts_of
from engram.wings.facts.services.derived_facts import DerivedFacts
from engram.wings.facts.services.fact_service import StatedFact
from tests.support import state


def test_what_is_believed_follows_from_the_log(application: Application, curie: str) -> None:
    stated = StatedFact(Triple("Marie Curie", "spouse", "Pierre Curie", 0, "entity", None, None, 1.0))
    scope = application.auth.access.scope(curie)
    facts_of(application).facts.state(scope, [stated], source="a page")
    one, other = (row["id"] for row in state.rows(application, curie, "fact_entity"))
    facts_of(application).entity_merges.merge(scope, one, [other], judge="careful", key="merged")

    report = application.revocation.verification.verify(scope)
    assert report.clean
    rows = {table.table: table.rows for table in report.tables}
    assert [one for one in rows if one in DerivedFacts.verified_tables] == list(DerivedFacts.verified_tables)
    for table in DerivedFacts.verified_tables:
        kept = state.rows(application, curie, table)
        if table == "fact_entity":  # names come with facts; what they stand for is learned
            kept = [row for row in kept if row["stands_for"] is not None]
        assert rows[table] == len(kept), table
        assert rows[table] > 0, table
