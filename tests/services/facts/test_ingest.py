"""Facts of passages: kept with the passages, changed with them, and erased with them; proved and copied."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from app.composition import Application, Servers
from app.services.access.scope import Scope
from app.services.facts.revise import Revision
from app.services.facts.search import Wanted
from app.settings import Settings
from tests.support import state, undo
from tests.support.databases import application_on
from tests.support.statements import watched

LOVELACE = {
    "id": "ada",
    "title": "Ada Lovelace",
    "text": "Ada Lovelace (10 December 1815 – 27 November 1852) was an English mathematician. "
    "She was born in London.",
}


@pytest.fixture(scope="module")
def reading(addresses: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    """An application that keeps facts of what it ingests."""
    with application_on(addresses, settings.model_copy(update={"facts": True}), application) as services:
        yield services


def put(application: Application, name: str, *passages: Mapping[str, Any]) -> Scope:
    state.staged(application, name, *passages)
    application.runner.run_ready()
    return application.access.scope(name)


def facts(application: Application, name: str) -> dict[tuple[str, str], dict[str, Any]]:
    entities = {row["id"]: row["surface"] for row in state.rows(application, name, "fact_entity")}
    return {
        (row["predicate"], row["object_text"]): row | {"subject": entities[row["subject_id"]]}
        for row in state.rows(application, name, "fact")
    }


def test_a_passage_gives_facts_with_its_sentences(reading: Application, collection: str) -> None:
    scope = put(reading, collection, LOVELACE)
    born = facts(reading, collection)["date of birth", "10 December 1815"]
    assert (born["subject"], born["object_kind"]) == ("Ada Lovelace", "date")
    found = reading.fact_search.search(scope, Wanted(question="When was Ada Lovelace born?"))
    assert found.paths[0].facts == (born["id"],)
    assert found.citations[0].passage == "ada"
    assert found.citations[0].text.startswith("Ada Lovelace (10 December 1815")
    undo.assert_verified(reading, collection)


def test_a_second_passage_repeats_a_fact_and_its_going_takes_that_back(
    reading: Application, collection: str
) -> None:
    scope = put(reading, collection, LOVELACE)
    before = facts(reading, collection)
    put(reading, collection, LOVELACE | {"id": "other", "text": LOVELACE["text"] + " She wrote notes."})
    key = "date of birth", "10 December 1815"
    assert facts(reading, collection)[key]["belief"] > before[key]["belief"]
    reading.ingest.delete_passage(scope, "other")
    assert facts(reading, collection) == before
    reading.ingest.delete_passage(scope, "ada")
    left = {table: state.rows(reading, collection, table) for table in ("fact", "fact_entity", "fact_audit")}
    assert left == {"fact": [], "fact_entity": [], "fact_audit": []}


def test_a_changed_passage_keeps_what_it_still_says_with_its_verdicts(
    reading: Application, collection: str
) -> None:
    scope = put(reading, collection, LOVELACE)
    key = "date of birth", "10 December 1815"
    (applied,) = reading.facts.revise(
        scope, [Revision("confirm", facts(reading, collection)[key]["id"])], judge="ana", key="1"
    )
    before = facts(reading, collection)
    first, _ = LOVELACE["text"].split(". ")
    put(reading, collection, LOVELACE | {"text": f"{first}. She lived in Rome."})
    after = facts(reading, collection)
    assert after[key] == before[key]
    assert not any(row["object_kind"] == "entity" and "London" in str(name) for name, row in after.items())
    undo.assert_verified(reading, collection)
    reading.withdraw.revoke(scope, applied.event.id)
    assert facts(reading, collection)[key]["belief"] < before[key]["belief"]
    undo.assert_verified(reading, collection)


def test_a_fact_that_does_not_follow_from_what_was_said_is_found(reading: Application, collection: str) -> None:
    scope = put(reading, collection, LOVELACE)
    with reading.database.write() as writer:
        writer.execute(
            "UPDATE fact SET belief = belief - 1e-12 WHERE collection_id = %(c)s AND predicate = 'date of birth'",
            {"c": scope.collection.id},
        )
        writer.execute(
            "DELETE FROM fact_audit WHERE collection_id = %(c)s AND fact_id IN (SELECT id FROM fact WHERE "
            "collection_id = %(c)s AND predicate = 'date of death')",
            {"c": scope.collection.id},
        )
    report = reading.verify.verify(scope)
    assert {(difference.table, difference.reason) for difference in report.differences} >= {
        ("fact_audit", "is missing")
    }
    assert {difference.table for difference in report.differences} == {"fact", "fact_audit"}


def test_a_batch_takes_as_many_statements_as_a_passage(reading: Application, collection: str) -> None:
    def counted(*passages: Mapping[str, Any]) -> int:
        state.staged(reading, collection, *passages)
        with watched() as sent:
            reading.runner.run_ready()
        return sent.statements

    def told(number: int) -> dict[str, Any]:
        name = f"Person {number} of Ruritania"
        return {
            "id": f"p{number}",
            "title": name,
            "text": f"{name} (born {1900 + number}) was a painter. He wed Ada {number}.",
        }

    counted(LOVELACE)
    one = counted(told(0))
    assert counted(*(told(number) for number in range(1, 9))) <= one + 1


def test_names_of_passages_join_what_they_mean(reading: Application, collection: str) -> None:
    text = "Edward James Solomon (born 20 November 1960) is an American film director. Ed Solomon wrote Mosaic."
    put(reading, collection, {"id": "solomon", "title": "Edward James Solomon", "text": text})
    joins = [row["judge"] for row in state.rows(reading, collection, "fact_event") if row["kind"] == "merge"]
    assert joins == ["alignment"]
    undo.assert_verified(reading, collection)
    reading.ingest.delete_passage(reading.access.scope(collection), "solomon")
    assert state.rows(reading, collection, "fact_entity") == []
