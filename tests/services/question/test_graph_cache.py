"""What a process has read of a graph, held against what a process that has read nothing answers."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context import tenancy
from engram.context.tenancy import ReaderNames
from engram.services.corpus.document_service import DocumentChange
from engram.services.question import caches
from engram.services.question.answer import build_answer
from engram.services.question.caches import GraphCache, PassageKeyCache
from engram.services.question.query import Query
from engram.services.question.search import RetrievalResult, RetrievalService
from engram.services.question.trace_building import build_trace
from engram.storage.corpus import collections, current_vectors, documents
from engram.storage.question.query_focus import Focus
from tests.conftest import CURIE
from tests.support import state
from tests.support.databases import application_on
from tests.support.keys import statements

QUESTIONS = ("Into which sea flows the river of Marie Curie's birthplace?", "Who found polonium in 1898?")
ROOM = 2**20
DOCUMENT = [
    {"id": "rivers.md#1", "document": "rivers.md", "text": "The Oder flows through Wroclaw into the Baltic Sea."},
    {"id": "rivers.md#2", "document": "rivers.md", "text": "The Vistula flows through Warsaw. Marie Curie saw it."},
]


@pytest.fixture(scope="module")
def alone(own: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    """An application whose jobs nobody else does."""
    with application_on(own, settings, application) as services:
        yield services


@pytest.fixture
def corpus(alone: Application, collection: str) -> str:
    """The linked passages, a document, and a near-duplicate."""
    copy = CURIE[1] | {"id": "copy", "text": CURIE[1]["text"] + " "}
    ingest(alone, collection, *CURIE, *DOCUMENT, copy, documents=["rivers.md"])
    return collection


def ingest(application: Application, name: str, *passages: Any, **more: Any) -> None:
    state.stage_passages(application, name, *passages, **more)
    application.jobs.runner.run_ready()


def build_service(application: Application, graphs: GraphCache) -> RetrievalService:
    return RetrievalService(
        application.database,
        application.retrieval.planner,
        application.models.priors,
        PassageKeyCache(0),
        graphs,
        application.retrieval.question_spreads,
        threshold=0.8,
    )


def show(found: RetrievalResult) -> tuple[Any, ...]:
    """All that is said of a question, but for ids of the query and times."""
    told = build_answer(found)
    hops = [(hop.start, hop.selected, hop.scores.tolist(), hop.evidence, hop.counts) for hop in found.walk.hops]
    return told.passages, told.sufficiency, build_trace(found), hops, found.ranking.features.tolist()


def ask_all(application: Application, service: RetrievalService, name: str) -> list[tuple[Any, ...]]:
    scope = application.auth.access.scope(name)
    queries = [Query(text=text, scope=scope, memory=memory) for text in QUESTIONS for memory in ("off", "read")]
    return [show(service.find(service.plan(query))) for query in queries]


def change(application: Application, name: str) -> None:
    ingest(application, name, CURIE[2] | {"text": "The Vistula is a river. Marie Curie never saw the Vistula."})


def delete(application: Application, name: str) -> None:
    application.corpus.ingest.delete_passage(application.auth.access.scope(name), "vistula")


def rename(application: Application, name: str) -> None:
    application.corpus.documents.change(
        application.auth.access.scope(name), "rivers.md", DocumentChange(source="waters.md")
    )


def replace_document(application: Application, name: str) -> None:
    """A section comes before the others, so their sentences move."""
    first = {"id": "rivers.md#1", "document": "rivers.md", "text": "Rivers of Poland. Marie Curie knew them."}
    moved = [one | {"id": f"rivers.md#{at}"} for at, one in enumerate(DOCUMENT, start=2)]
    ingest(application, name, first, *moved, documents=["rivers.md"])


@pytest.mark.parametrize("changed", [change, delete, rename, replace_document], ids=lambda of: of.__name__)
def test_changed_graph_is_read_anew(
    alone: Application, corpus: str, changed: Callable[[Application, str], None]
) -> None:
    """Answers are those of a process that has read nothing, also of an earlier snapshot."""
    reading = build_service(alone, GraphCache(ROOM))
    before = ask_all(alone, reading, corpus)
    assert before == ask_all(alone, reading, corpus) == ask_all(alone, build_service(alone, GraphCache(0)), corpus)
    changed(alone, corpus)
    after = ask_all(alone, reading, corpus)
    assert after == ask_all(alone, build_service(alone, GraphCache(0)), corpus)
    assert after != before


def test_rows_that_move_give_the_graph_another_version(alone: Application, corpus: str) -> None:
    """Queries may come after a document's rows have moved and before its new text is written."""
    target, passage = alone.auth.access.scope(corpus).collection.id, state.passages(alone, corpus)["rivers.md#2"]
    document = next(row["id"] for row in state.rows(alone, corpus, "document"))
    sentence = next(iter(state.sentences(alone, corpus, "rivers.md#1").values()))
    versions = set()
    for move in (
        lambda writer: documents.place_passages(writer, target, document, {passage: "rivers.md#3"}),
        lambda writer: documents.move_sentences(writer, target, {sentence: (passage, 7)}),
        lambda writer: None,
    ):
        with alone.database.write() as writer:
            versions.add(current_vectors.find_current(writer, target))
            move(writer)
    assert len(versions) == 3


def test_what_was_read_is_not_read_again(alone: Application, corpus: str) -> None:
    service = build_service(alone, GraphCache(ROOM))
    with statements() as first:
        ask_all(alone, service, corpus)
    with statements() as second:
        ask_all(alone, service, corpus)
    for part in ("held.term_ids", "AS links", "count(DISTINCT counted.passage_id)", "AS entities FROM ("):
        assert any(part in statement for statement in first), part
        assert not any(part in statement for statement in second), part


def test_readers_are_shown_what_they_see(alone: Application, corpus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody read who sees more reaches nobody else, and a change of readers holds at once."""
    monkeypatch.setattr(caches, "COUNTED_SECONDS", 0.0)  # else the later of two answers may be by newer counts
    scope, graphs = alone.auth.access.scope(corpus), GraphCache(ROOM)
    readers = alone.corpus.readers
    readers.set_of_passage(scope, "vistula", ["group:a"])

    def ask(*names: str) -> list[tuple[Any, ...]]:
        with tenancy.restrict_to(scope.principal.tenant, ReaderNames(names)):
            told = ask_all(alone, build_service(alone, graphs), corpus)
            assert told == ask_all(alone, build_service(alone, GraphCache(0)), corpus)
        return told

    everything = ask_all(alone, build_service(alone, graphs), corpus)
    assert "The Vistula flows into the Baltic Sea" in str(everything)
    assert "The Vistula flows into the Baltic Sea" in str(ask("group:a"))
    assert "The Vistula flows into the Baltic Sea" not in str(ask("group:b"))
    readers.set_of_passage(scope, "vistula", ["group:b"])
    assert "The Vistula flows into the Baltic Sea" not in str(ask("group:a"))
    assert "The Vistula flows into the Baltic Sea" in str(ask("group:b"))


def test_graphs_that_were_not_asked_for_longest_go_first(alone: Application, corpus: str, collection: str) -> None:
    other = f"{collection}-other"
    ingest(alone, other, *CURIE)
    most = 10**9
    graphs = GraphCache(most)

    def read(name: str) -> int:
        """Bytes of the graph as it was found; then its terms are read."""
        with alone.database.snapshot() as reader:
            found = collections.find(reader, name)
            focus = Focus(found, alone.models.embedder.embed([""])[0], limits=alone.models.limits)
            graph = graphs.open(reader, focus, current_vectors.find_current(reader, found.id))
            size = graph.bytes
            graph.read_terms(reader, sorted(state.passages(alone, name).values()))
        return size

    assert read(corpus) == read(other) == 0
    assert min(read(corpus), read(other)) > 0
    graphs = GraphCache(read(corpus))  # as much as the terms of one collection take
    assert [read(name) > 0 for name in (corpus, corpus, other, other, corpus)] == [False, True, False, True, False]
