"""Facts of passages: kept with the passages, changed with them, and erased with them; proved and copied."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from engram.composition.container import Application
from engram.services.auth.scope import Scope
from engram.services.question.passage_source import PassageSource
from engram.wings.facts.core.beliefs import UNSAID
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.parts import facts_of
from engram.wings.facts.services.fact_search import FactPattern
from engram.wings.facts.services.fact_service import Revision, StatedFact
from tests.support import past, state, undo
from tests.support.statements import record_statements

LOVELACE = {
    "id": "ada",
    "title": "Ada Lovelace",
    "text": "Ada Lovelace (10 December 1815 – 27 November 1852) was an English mathematician. "
    "She was born in London.",
}


@pytest.fixture
def reading(application: Application, collection: str) -> Application:
    """The application, with an empty collection that reads facts from passages about their title."""
    put(application, collection)
    application.corpus.collection_settings.configure(
        application.auth.access.scope(collection), {"passage_facts": "on"}
    )
    return application


def put(application: Application, name: str, *passages: Mapping[str, Any]) -> Scope:
    state.stage_passages(application, name, *passages)
    application.jobs.runner.run_ready()
    return application.auth.access.scope(name)


def facts(application: Application, name: str) -> dict[tuple[str, str], dict[str, Any]]:
    entities = {row["id"]: row["surface"] for row in state.rows(application, name, "fact_entity")}
    return {
        (row["predicate"], row["object_text"]): row | {"subject": entities[row["subject_id"]]}
        for row in state.rows(application, name, "fact")
    }


def test_facts_move_with_the_sentences_of_a_document_that_is_cut_anew(
    reading: Application, collection: str
) -> None:
    first, second = LOVELACE["text"].split(". She")
    whole = LOVELACE | {"id": "ada.md#1", "document": "ada.md", "sentences": [f"{first}.", f"She{second}"]}
    halves = [
        whole | {"id": "ada.md#1", "text": f"{first}.", "sentences": [f"{first}."]},
        whole | {"id": "ada.md#2", "text": f"She{second}", "sentences": [f"She{second}"]},
    ]
    state.stage_passages(reading, collection, whole, documents=["ada.md"])
    reading.jobs.runner.run_ready()
    before = facts(reading, collection)
    state.stage_passages(reading, collection, *halves, documents=["ada.md"])
    reading.jobs.runner.run_ready()
    after = facts(reading, collection)
    assert {fact: row["id"] for fact, row in after.items()} == {fact: row["id"] for fact, row in before.items()}
    passages = state.passages(reading, collection)
    assert {row["passage_id"] for row in state.rows(reading, collection, "fact_source")} <= set(passages.values())
    undo.assert_verified(reading, collection)


def test_a_passage_gives_facts_with_its_sentences(reading: Application, collection: str) -> None:
    reading.corpus.collection_settings.configure(
        reading.auth.access.scope(collection), {"link_template": "https://wiki.example.org/{source}#{heading}"}
    )
    page = {"source": "people/ada.md", "heading": ["People", "Ada"], "page": 3}
    scope = put(reading, collection, LOVELACE | {"metadata": page})
    born = facts(reading, collection)["date of birth", "10 December 1815"]
    assert (born["subject"], born["object_kind"]) == ("Ada Lovelace", "date")
    found = facts_of(reading).fact_search.search(scope, FactPattern(question="When was Ada Lovelace born?"))
    assert found.paths[0].facts == (born["id"],)
    assert found.citations[0].passage == "ada"
    assert found.citations[0].text.startswith("Ada Lovelace (10 December 1815")
    source = PassageSource(
        "people/ada.md", ("People", "Ada"), 3, "https://wiki.example.org/people/ada.md#Ada", language="en"
    )
    assert found.citations[0].source == source
    assert [one.source for one in facts_of(reading).show.fact(scope, born["id"]).sources] == [source]
    undo.assert_verified(reading, collection)


def test_a_second_passage_repeats_a_fact_and_its_going_takes_that_back(
    reading: Application, collection: str
) -> None:
    scope = put(reading, collection, LOVELACE)
    before = facts(reading, collection)
    put(reading, collection, LOVELACE | {"id": "other", "text": LOVELACE["text"] + " She wrote notes."})
    key = "date of birth", "10 December 1815"
    assert facts(reading, collection)[key]["belief"] > before[key]["belief"]
    reading.corpus.ingest.delete_passage(scope, "other")
    assert facts(reading, collection) == before
    reading.corpus.ingest.delete_passage(scope, "ada")
    left = {table: state.rows(reading, collection, table) for table in ("fact", "fact_entity", "fact_audit")}
    assert left == {"fact": [], "fact_entity": [], "fact_audit": []}


def test_a_changed_passage_keeps_what_it_still_says_with_its_verdicts(
    reading: Application, collection: str
) -> None:
    scope = put(reading, collection, LOVELACE)
    key = "date of birth", "10 December 1815"
    (applied,) = facts_of(reading).facts.revise(
        scope, [Revision("confirm", facts(reading, collection)[key]["id"])], judge="ana", key="1"
    )
    before = facts(reading, collection)
    first, _ = LOVELACE["text"].split(". ")
    put(reading, collection, LOVELACE | {"text": f"{first}. She lived in Rome."})
    after = facts(reading, collection)
    assert after[key] == before[key]
    assert after["place of birth", "London"]["closed_reason"] == UNSAID
    undo.assert_verified(reading, collection)
    facts_of(reading).withdraw.revoke(scope, applied.event.id)
    assert facts(reading, collection)[key]["belief"] < before[key]["belief"]
    undo.assert_verified(reading, collection)


BORN = "place of birth", "London"


def test_fact_of_a_changed_passage_ends_and_stays_in_the_past(reading: Application, collection: str) -> None:
    scope = put(reading, collection, LOVELACE)
    before, moment = facts(reading, collection), past.now(reading)
    first, _ = LOVELACE["text"].split(". ")
    put(reading, collection, LOVELACE | {"text": f"{first}. She lived in Rome."})
    now = facts(reading, collection)[BORN]
    assert (now["closed_reason"], now["belief"], now["perplexity"]) == (UNSAID, 0.5, 1.0)
    asked = FactPattern(question="Where was Ada Lovelace born?")
    assert now["id"] not in facts_of(reading).fact_search.search(scope, asked).facts
    then = facts_of(reading).fact_search.search(scope, replace(asked, as_of=moment))
    assert then.beliefs[now["id"]] == before[BORN]["belief"] > 0.6
    assert "She was born in London." in [source.text for source in then.citations]
    shown = facts_of(reading).show.fact(scope, now["id"])
    assert [cause.word.kind for cause in shown.history] == ["source", "change"]
    assert shown.sources[0].withdrawn_at is not None
    undo.assert_verified(reading, collection)

    made = past.rebuild_past(reading, collection, moment, f"{collection}-then").collection
    assert facts(reading, made)[BORN]["closed_at"] is None
    assert facts(reading, made)[BORN]["belief"] == before[BORN]["belief"]

    put(reading, collection, LOVELACE)
    again = facts(reading, collection)[BORN]
    assert (again["id"], again["closed_at"], again["belief"]) == (now["id"], None, before[BORN]["belief"])
    undo.assert_verified(reading, collection)
    reading.corpus.ingest.delete_passage(scope, "ada")
    tables = ("fact", "fact_entity", "fact_audit", "fact_source", "fact_statement")
    assert {table: state.rows(reading, collection, table) for table in tables} == {table: [] for table in tables}


def test_another_source_keeps_what_a_changed_passage_says_no_more(reading: Application, collection: str) -> None:
    other = LOVELACE | {"id": "other", "text": LOVELACE["text"] + " She wrote notes."}
    scope = put(reading, collection, LOVELACE)
    once = facts(reading, collection)[BORN]["belief"]
    put(reading, collection, other)
    put(reading, collection, LOVELACE | {"text": LOVELACE["text"].split(". ")[0] + "."})
    kept = facts(reading, collection)[BORN]
    assert (kept["closed_at"], kept["belief"]) == (None, once)
    undo.assert_verified(reading, collection)
    (change,) = [row["id"] for row in state.rows(reading, collection, "fact_event") if row["kind"] == "change"]
    facts_of(reading).withdraw.revoke(scope, change)
    assert facts(reading, collection)[BORN]["belief"] > once
    undo.assert_verified(reading, collection)


def test_stated_fact_follows_the_words_of_its_passage(reading: Application, collection: str) -> None:
    scope = put(reading, collection, LOVELACE)
    told = {
        ("in the text", "London"): "She was born in London.",
        ("in other words", "English"): "Ada was English.",
        ("in other words", "London"): "London is where she came from.",
    }
    stated = [
        StatedFact(Triple("Ada Lovelace", predicate, name, 0, "text", None, None, 1.0), sentence)
        for (predicate, name), sentence in told.items()
    ]
    facts_of(reading).facts.state(scope, stated, source="ada")
    put(reading, collection, LOVELACE | {"text": LOVELACE["text"].split(". ")[0] + "."})
    after = facts(reading, collection)
    assert {one: after[one]["closed_reason"] for one in told} == {
        ("in the text", "London"): UNSAID,
        ("in other words", "English"): None,
        ("in other words", "London"): UNSAID,
    }
    undo.assert_verified(reading, collection)


def test_verification_finds_facts_that_do_not_follow_from_the_log(reading: Application, collection: str) -> None:
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
    report = reading.revocation.verification.verify(scope)
    assert {(difference.table, difference.reason) for difference in report.differences} >= {
        ("fact_audit", "is missing")
    }
    assert {difference.table for difference in report.differences} == {"fact", "fact_audit"}


def test_a_batch_takes_as_many_statements_as_a_passage(reading: Application, collection: str) -> None:
    def count_statements(*passages: Mapping[str, Any]) -> int:
        state.stage_passages(reading, collection, *passages)
        with record_statements() as sent:
            reading.jobs.runner.run_ready()
        return sent.statements

    def build_passage(number: int) -> dict[str, Any]:
        name = f"Person {number} of Ruritania"
        return {
            "id": f"p{number}",
            "title": name,
            "text": f"{name} (born {1900 + number}) was a painter. He wed Ada {number}.",
        }

    count_statements(LOVELACE)
    one = count_statements(build_passage(0))
    assert count_statements(*(build_passage(number) for number in range(1, 9))) <= one + 1


def test_names_of_passages_join_what_they_mean(reading: Application, collection: str) -> None:
    text = "Edward James Solomon (born 20 November 1960) is an American film director. Ed Solomon wrote Mosaic."
    put(reading, collection, {"id": "solomon", "title": "Edward James Solomon", "text": text})
    joins = [row["judge"] for row in state.rows(reading, collection, "fact_event") if row["kind"] == "merge"]
    assert joins == ["alignment"]
    undo.assert_verified(reading, collection)
    reading.corpus.ingest.delete_passage(reading.auth.access.scope(collection), "solomon")
    assert state.rows(reading, collection, "fact_entity") == []


def test_facts_are_read_from_pages_and_only_where_that_is_set(application: Application, collection: str) -> None:
    scope = put(application, collection, LOVELACE)
    assert facts(application, collection) == {}

    assert application.corpus.collection_settings.configure(scope, {"passage_facts": "on"}).passage_facts == "on"
    put(application, collection, LOVELACE | {"id": "page"}, LOVELACE | {"id": "news", "title": "Council news"})
    sources = {row["sentence_id"] for row in state.rows(application, collection, "fact_source")}
    assert sources == set(state.sentences(application, collection, "page").values())

    assert application.corpus.collection_settings.configure(scope, {"passage_facts": None}).passage_facts == "off"
    first, _ = LOVELACE["text"].split(". ")
    put(application, collection, LOVELACE | {"id": "page", "text": f"{first}. She lived in Rome."})
    after = facts(application, collection)
    assert after[BORN]["closed_reason"] == UNSAID
    assert after["date of birth", "10 December 1815"]["closed_reason"] is None
    assert not any(thing == "Rome" for _, thing in after)
    undo.assert_verified(application, collection)
