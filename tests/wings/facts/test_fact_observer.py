"""Facts that passages are the sources of: changed with the passages, and erased with them; proved and copied."""

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from contextvars import copy_context
from dataclasses import replace
from typing import Any

import pytest

from engram.composition.container import Application
from engram.core.text.passage_source import PassageSource
from engram.services.auth.scope import Scope
from engram.storage.database import Writer
from engram.wings.facts.core.beliefs import UNSAID
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.parts import facts_of
from engram.wings.facts.services.fact_observer import FactObserver
from engram.wings.facts.services.fact_search import FactPattern
from engram.wings.facts.services.fact_service import Revision, StatedFact
from engram.wings.facts.services.fact_transaction import begin_change
from tests.support import past, state, undo

LOVELACE = {
    "id": "ada",
    "title": "Ada Lovelace",
    "text": "Ada Lovelace was a mathematician. She was born in London.",
}
ROMAN = LOVELACE | {"text": "Ada Lovelace was a mathematician. She lived in Rome."}
BORN = "place of birth", "London"
SAID = {
    ("is a", "mathematician"): "Ada Lovelace was a mathematician.",
    BORN: "She was born in London.",
}
TABLES = ("fact", "fact_entity", "fact_audit", "fact_source", "fact_statement")


def put(application: Application, name: str, *passages: Mapping[str, Any]) -> Scope:
    state.stage_passages(application, name, *passages)
    application.jobs.runner.run_ready()
    return application.auth.access.scope(name)


def say(
    application: Application,
    scope: Scope,
    said: Mapping[tuple[str, str], str] = SAID,
    source: str = "ada",
    graph: str | None = None,
) -> None:
    """State facts of Ada Lovelace with a passage for their source."""
    stated = [
        StatedFact(Triple("Ada Lovelace", predicate, name, 0, "text", None, None, 1.0), sentence)
        for (predicate, name), sentence in said.items()
    ]
    facts_of(application).facts.state(scope, stated, source=source, graph_name=graph)


@pytest.fixture
def scope(application: Application, collection: str) -> Scope:
    """A collection with one passage and the facts that it says."""
    opened = put(application, collection, LOVELACE)
    say(application, opened)
    return opened


def facts(application: Application, name: str) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["predicate"], row["object_text"]): row for row in state.rows(application, name, "fact")}


@pytest.mark.parametrize(
    "follow",
    [
        lambda writer, collection: FactObserver().change(writer, collection, {}),
        lambda writer, collection: FactObserver().removal(writer, collection, 0),
    ],
    ids=["change", "removal"],
)
def test_a_passage_waits_for_who_changes_facts(
    application: Application, scope: Scope, follow: Callable[[Writer, int], AbstractContextManager[None]]
) -> None:
    followed = threading.Event()

    def write() -> None:
        with application.database.write() as writer, follow(writer, scope.collection.id):
            followed.set()

    waiting = threading.Thread(target=copy_context().run, args=(write,))
    with begin_change(application.database, scope):
        waiting.start()
        assert not followed.wait(0.1)
    waiting.join(10)
    assert followed.is_set()


def test_a_fact_has_the_source_of_its_passage(application: Application, collection: str) -> None:
    page = {"source": "people/ada.md", "heading": ["People", "Ada"], "page": 3}
    scope = put(application, collection, LOVELACE | {"metadata": page})
    application.corpus.collection_settings.configure(
        scope, {"link_template": "https://wiki.example.org/{source}#{heading}"}
    )
    scope = application.auth.access.scope(collection)
    say(application, scope)
    born = facts(application, collection)[BORN]["id"]
    found = facts_of(application).fact_search.search(scope, FactPattern(question="Where was Ada Lovelace born?"))
    source = PassageSource(
        "people/ada.md", ("People", "Ada"), 3, "https://wiki.example.org/people/ada.md#Ada", language="en"
    )
    assert found.paths[0].facts == (born,)
    cited = found.citations[0]
    assert (cited.passage, cited.stated_by, cited.text, cited.source) == ("ada", "ada", SAID[BORN], source)
    assert [one.source for one in facts_of(application).views.fact(scope, born).sources] == [source]
    undo.assert_verified(application, collection)


def test_a_second_passage_repeats_a_fact_and_its_going_takes_that_back(
    application: Application, collection: str, scope: Scope
) -> None:
    before = facts(application, collection)
    put(application, collection, LOVELACE | {"id": "other"})
    say(application, scope, source="other")
    assert facts(application, collection)[BORN]["belief"] > before[BORN]["belief"]
    application.corpus.ingest.delete_passage(scope, "other")
    assert facts(application, collection) == before
    application.corpus.ingest.delete_passage(scope, "ada")
    assert {table: state.rows(application, collection, table) for table in TABLES} == {
        table: [] for table in TABLES
    }


def test_a_changed_passage_keeps_what_it_still_says_with_its_verdicts(
    application: Application, collection: str, scope: Scope
) -> None:
    key = "is a", "mathematician"
    (applied,) = facts_of(application).facts.revise(
        scope, [Revision("confirm", facts(application, collection)[key]["id"])], judge="ana", key="1"
    )
    before = facts(application, collection)
    put(application, collection, ROMAN)
    after = facts(application, collection)
    assert after[key] == before[key]
    assert after[BORN]["closed_reason"] == UNSAID
    undo.assert_verified(application, collection)
    facts_of(application).retractions.revoke(scope, applied.event.id)
    assert facts(application, collection)[key]["belief"] < before[key]["belief"]
    undo.assert_verified(application, collection)


def test_fact_of_a_changed_passage_ends_and_stays_in_the_past(
    application: Application, collection: str, scope: Scope
) -> None:
    before, moment = facts(application, collection), past.now(application)
    put(application, collection, ROMAN)
    now = facts(application, collection)[BORN]
    assert (now["closed_reason"], now["belief"], now["perplexity"]) == (UNSAID, 0.5, 1.0)
    asked = FactPattern(question="Where was Ada Lovelace born?")
    assert now["id"] not in facts_of(application).fact_search.search(scope, asked).facts
    then = facts_of(application).fact_search.search(scope, replace(asked, as_of=moment))
    assert then.beliefs[now["id"]] == before[BORN]["belief"] > 0.6
    assert SAID[BORN] in [source.text for source in then.citations]
    shown = facts_of(application).views.fact(scope, now["id"])
    assert [cause.word.kind for cause in shown.history] == ["source", "change"]
    assert shown.sources[0].withdrawn_at is not None
    undo.assert_verified(application, collection)

    made = past.rebuild_past(application, collection, moment, f"{collection}-then").collection
    assert facts(application, made)[BORN]["closed_at"] is None
    assert facts(application, made)[BORN]["belief"] == before[BORN]["belief"]

    application.corpus.ingest.delete_passage(scope, "ada")
    assert {table: state.rows(application, collection, table) for table in TABLES} == {
        table: [] for table in TABLES
    }


def test_another_source_keeps_what_a_changed_passage_says_no_more(
    application: Application, collection: str, scope: Scope
) -> None:
    once = facts(application, collection)[BORN]["belief"]
    put(application, collection, LOVELACE | {"id": "other"})
    say(application, scope, source="other")
    put(application, collection, ROMAN)
    kept = facts(application, collection)[BORN]
    assert (kept["closed_at"], kept["belief"]) == (None, once)
    undo.assert_verified(application, collection)
    (change,) = [row["id"] for row in state.rows(application, collection, "fact_event") if row["kind"] == "change"]
    facts_of(application).retractions.revoke(scope, change)
    assert facts(application, collection)[BORN]["belief"] > once
    undo.assert_verified(application, collection)


@pytest.mark.parametrize("graph", [None, "own"])
def test_stated_fact_follows_the_words_of_its_passage(
    application: Application, collection: str, graph: str | None
) -> None:
    scope = put(application, collection, LOVELACE)
    told = {
        ("in the text", "London"): "She was born in London.",
        ("in other words", "mathematician"): "Ada did mathematics.",
        ("in other words", "London"): "London is where she came from.",
    }
    say(application, scope, told, graph=graph)
    put(application, collection, ROMAN)
    after = facts(application, collection)
    assert {one: after[one]["closed_reason"] for one in told} == {
        ("in the text", "London"): UNSAID,
        ("in other words", "mathematician"): None,
        ("in other words", "London"): UNSAID,
    }
    undo.assert_verified(application, collection)


def test_verification_finds_facts_that_do_not_follow_from_the_log(
    application: Application, collection: str, scope: Scope
) -> None:
    with application.database.write() as writer:
        writer.execute(
            "UPDATE fact SET belief = belief - 1e-12 WHERE collection_id = %(c)s AND predicate = 'is a'",
            {"c": scope.collection.id},
        )
        writer.execute(
            "DELETE FROM fact_audit WHERE collection_id = %(c)s AND fact_id IN (SELECT id FROM fact WHERE "
            "collection_id = %(c)s AND predicate = 'place of birth')",
            {"c": scope.collection.id},
        )
    report = application.revocation.verification.verify(scope)
    assert {(difference.table, difference.reason) for difference in report.differences} >= {
        ("fact_audit", "is missing")
    }
    assert {difference.table for difference in report.differences} == {"fact", "fact_audit"}
