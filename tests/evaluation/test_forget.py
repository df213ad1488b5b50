"""Reset takes a collection back to the day before its first verdict, and touches no other."""

import pytest

from engram.composition.container import Application
from engram.context.errors import NotFoundError
from engram.services.question.query import Query
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.storage.tables import metadata
from tests.support.state import rows

QUESTION = "Into which sea flows the river of Marie Curie's birthplace?"
# What a corpus consists of. Any other table of a collection is learned state, and a reset empties it.
CORPUS = {
    "document",
    "passage",
    "sentence",
    "entity",
    "entity_sentence",
    "time_expression",
    "lexical_term",
    "lexical_posting",
    "lexical_passage",
    "job",
    "ingest_line",
    "ingest_document",
    "ingest_error",
    "idempotency",
    "fact",
    "fact_audit",
    "fact_entity",
    "fact_event",
    "fact_graph",
    "fact_predicate",
    "fact_source",
    "fact_statement",
}
TENANT_TABLES = {table.name for table in metadata.sorted_tables if "collection_id" in table.columns}


def teach(application: Application, collection: str) -> None:
    answer = application.answers.question.answer(
        Query(text=QUESTION + " In 1867?", scope=application.auth.access.scope(collection))
    )
    supporting = [NamedSentence(passage_id="vistula", text="The Vistula flows into the Baltic Sea.")]
    verdict = Verdict(
        query_id=answer.query_id, scope=application.auth.access.scope(collection), supporting=supporting
    )
    assert (
        application.learning.verdicts.accept(verdict, f"forget-{collection}", wait=True).event.status == "applied"
    )


def test_everything_learned_goes_and_the_corpus_stays(application: Application, curie: str) -> None:
    corpus = {table: rows(application, curie, table) for table in sorted(CORPUS)}
    before = application.answers.question.answer(
        Query(text=QUESTION, scope=application.auth.access.scope(curie), memory="off")
    )
    teach(application, curie)
    learned = TENANT_TABLES - CORPUS
    assert {table for table in learned if rows(application, curie, table)} >= {
        "episode",
        "feedback_event",
        "judged_query",
        "memory_audit",
        "question",
        "question_support",
        "weight_audit",
        "learned_weights",
        "sentence_memory",
        "verdict_sentence",
    }
    application.revocation.learning_reset.reset(application.auth.access.scope(curie))
    assert {table for table in learned if rows(application, curie, table)} == set()
    assert {table: rows(application, curie, table) for table in sorted(CORPUS)} == corpus
    after = application.answers.question.answer(Query(text=QUESTION, scope=application.auth.access.scope(curie)))
    assert [(p.passage_id, p.score) for p in after.passages] == [(p.passage_id, p.score) for p in before.passages]


def test_the_neighbour_keeps_what_it_learned(application: Application, curie: str, ingest: object) -> None:
    other = f"{curie}-other"
    assert callable(ingest)
    ingest({"id": "vistula", "title": "Vistula", "text": "The Vistula flows into the Baltic Sea."}, into=other)
    teach(application, other)
    kept = {table: rows(application, other, table) for table in sorted(TENANT_TABLES)}
    application.revocation.learning_reset.reset(application.auth.access.scope(curie))
    assert {table: rows(application, other, table) for table in sorted(TENANT_TABLES)} == kept


def test_a_collection_without_verdicts_can_be_reset_twice(application: Application, curie: str) -> None:
    application.revocation.learning_reset.reset(application.auth.access.scope(curie))
    application.revocation.learning_reset.reset(application.auth.access.scope(curie))


def test_an_unknown_collection(application: Application, collection: str) -> None:
    with pytest.raises(NotFoundError, match="There is no collection"):
        application.revocation.learning_reset.reset(application.auth.access.scope(collection))
