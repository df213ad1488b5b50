"""Erasure: after a passage is deleted, no table holds its text or its vectors."""

from collections.abc import Iterator

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.core.learning.logged_verdict import Expansion
from engram.services.question.query import Query
from engram.services.verdict.verdict import NamedSentence, Verdict
from tests.support import evolving, state, undo
from tests.support.databases import application_on, open_migrated

NAME, WORD, TITLE = "Quellmoor Zanzifar", "blubberwurstig", "Zottelwiese Knarzheim"
QUESTION = "Who lived by the river?"


@pytest.fixture
def alone(addresses: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    """An application on a database of its own: every row that there is gets looked through."""
    with open_migrated(addresses) as servers, application_on(servers, settings, application) as services:
        yield services


def places(application: Application, *marks: str) -> set[str]:
    """Tables with a row, of any collection, that holds one of the marks in any column, also as bytes."""
    found = set()
    with application.database.read() as reader:
        tables = reader.rows(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
        )
        for table in tables:
            for mark in marks:
                held = reader.scalar(
                    f"""
                    SELECT EXISTS (SELECT 1 FROM {table.relname} AS r
                    WHERE r::text ILIKE '%%' || %(mark)s || '%%' OR r::text LIKE '%%' || %(bytes)s || '%%')
                    """,
                    {"mark": mark, "bytes": mark.encode().hex()},
                )
                if held:
                    found.add(table.relname)
    return found


def vectors(application: Application, name: str, external_id: str) -> set[str]:
    """The vectors of a passage, its sentences and the entity it alone names, as text."""
    with application.database.read() as reader:
        rows = reader.rows(
            """
            WITH p AS (
                SELECT p.collection_id, p.id, p.embedding FROM passage p JOIN collection c ON c.id = p.collection_id
                WHERE c.name = %(name)s AND p.external_id = %(id)s
            ), s AS (
                SELECT s.collection_id, s.id, s.embedding FROM sentence s
                JOIN p ON s.collection_id = p.collection_id AND s.passage_id = p.id
            )
            SELECT embedding::text AS vector FROM p
            UNION SELECT embedding::text FROM s
            UNION SELECT e.embedding::text FROM entity e JOIN p USING (collection_id) WHERE e.surface = %(entity)s
            UNION SELECT m.vector::text FROM sentence_memory m
                JOIN s ON m.collection_id = s.collection_id AND m.sentence_id = s.id
            UNION SELECT k.vector::text FROM passage_key k
                JOIN p ON k.collection_id = p.collection_id AND k.passage_id = p.id
            """,
            {"name": name, "id": external_id, "entity": NAME},
        )
    return {row.vector for row in rows}


@pytest.mark.wing("published")
def test_deleted_passage_leaves_no_trace(alone: Application, collection: str) -> None:
    application = alone
    kept = {"id": "kept", "title": "River", "text": "The river flows by the mill. Somebody lived by it."}
    for was in ("was", "was very"):
        text = f"{NAME} lived by the river in 1871. It {was} {WORD} there."
        state.stage_passages(application, collection, {"id": "gone", "title": TITLE, "text": text}, kept)
        application.jobs.runner.run_ready()
    scope = application.auth.access.scope(collection)
    traced = frozenset({"trace", "sentences", "entities"})
    first = application.answers.question.serve(Query(text=QUESTION, scope=scope, include=traced))
    assert "gone" in {hit.passage_id for hit in first.passages}
    sentence = min(state.sentences(application, collection, "gone").values())
    application.learning.verdicts.accept(
        Verdict(
            query_id=first.query_id,
            scope=scope,
            supporting=[NamedSentence(sentence)],
            expansions=[Expansion("prf", "stream, brook, bank")],
            retrieval_success=True,
        ),
        "erasure",
        wait=True,
    )
    evolving.evolve(application, scope)
    again = application.answers.question.serve(Query(text=QUESTION, scope=scope, include=traced))
    marks = (NAME, WORD, TITLE, "Quellmoor", "Zanzifar", "Zottelwiese", "Knarzheim")
    erased = vectors(application, collection, "gone")
    assert len(erased) >= (6 if "published" in application.wing_services else 4)
    assert {"passage", "sentence", "entity", "lexical_term"} <= places(application, *marks)

    application.corpus.ingest.delete_passage(scope, "gone")

    assert places(application, *marks) == set()
    assert places(application, *erased) == set()
    for answer in (first, again):
        read = application.answers.episodes.read(scope, answer.query_id)
        shown = [hit["passage_id"] for hit in read.answer["passages"]]
        assert shown == [hit.passage_id for hit in answer.passages if hit.passage_id != "gone"]
    undo.assert_verified(application, collection)


def test_an_answer_is_read_again_as_it_was_given(application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie)
    traced = frozenset({"trace", "sentences", "entities"})
    asked = Query(text="Where was Marie Curie born in 1867?", scope=scope, include=traced)
    answer = application.answers.question.serve(asked)

    read = application.answers.episodes.read(scope, answer.query_id)

    assert answer.trace is not None
    for hit, kept in zip(answer.passages, read.answer["passages"], strict=True):
        assert (hit.passage_id, hit.title, hit.text) == (kept["passage_id"], kept["title"], kept["text"])
        assert [(s.sentence_id, s.position, s.text, s.score, s.hops) for s in hit.sentences] == [
            (s["sentence_id"], s["position"], s["text"], s["score"], s["hops"]) for s in kept["sentences"]
        ]
    assert read.trace == answer.trace
