"""Similarity of a question with titles and sentences, compared with their vectors."""

import numpy as np
import pytest

from engram.composition.container import Application
from engram.providers.language import normalise_entity
from engram.storage.corpus import collections
from engram.storage.question.passage_candidates import NO_COSINE, measure_likeness
from engram.storage.question.query_focus import Focus
from tests.support import state

QUESTION = "Which river flows through the city where Curie was born?"


@pytest.fixture
def focus(application: Application, curie: str) -> Focus:
    with application.database.read() as reader:
        return Focus(
            collections.find(reader, curie),
            application.models.embedder.embed([QUESTION])[0],
            limits=application.models.limits,
        )


def test_titles_and_best_sentences_are_compared(application: Application, curie: str, focus: Focus) -> None:
    application.corpus.names.run(collection_id=focus.collection.id)
    stored = sorted(state.rows(application, curie, "passage"), key=lambda row: row["id"], reverse=True)
    ids = [row["id"] for row in stored]
    with application.database.read() as reader:
        measured = measure_likeness(
            reader, focus, np.array(ids, dtype=np.int64), [normalise_entity(row["title"]) for row in stored]
        )
    titles = application.models.embedder.embed([row["title"] for row in stored]) @ focus.vector
    np.testing.assert_allclose(measured.titles, titles, atol=1e-2)
    best = [
        max(float(application.models.embedder.embed([text])[0] @ focus.vector) for text in own)
        for own in (state.sentences(application, curie, row["external_id"]) for row in stored)
    ]
    np.testing.assert_allclose(measured.sentences, best, atol=1e-2)


def test_passage_without_title_or_sentence_has_no_likeness(
    application: Application, curie: str, focus: Focus
) -> None:
    passage = next(iter(state.passages(application, curie).values()))
    with application.database.read() as reader:
        measured = measure_likeness(reader, focus, np.array([passage, passage, -1]), [None, "nobody's name", None])
    assert measured.titles.tolist() == [NO_COSINE] * 3
    assert measured.sentences[0] == measured.sentences[1] != 0.0 == measured.sentences[2]


def test_unembedded_title_has_no_likeness(application: Application, curie: str, focus: Focus) -> None:
    with application.database.write() as writer:
        writer.execute(
            "UPDATE entity SET embedding = NULL WHERE collection_id = %(id)s AND name = 'warsaw'",
            {"id": focus.collection.id},
        )
    passage = state.passages(application, curie)["warsaw"]
    with application.database.read() as reader:
        measured = measure_likeness(reader, focus, np.array([passage]), ["warsaw"])
    assert measured.titles.tolist() == [NO_COSINE]
