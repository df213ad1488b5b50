"""What the second look reads, held against the graph row by row."""

import json
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from app.composition import Application
from app.storage.corpus import collections
from app.storage.retrieval import second_look
from app.storage.retrieval.focus import Focus
from tests.support import state
from tests.support.keys import evolve

MOST = 1000


@pytest.fixture
def focus(application: Application, curie: str) -> Focus:
    question = application.embedder.embed(["Which river flows through the city where Curie was born?"])[0]
    with application.database.read() as reader:
        return Focus(collections.find(reader, curie), question)


def vector(shown: str) -> NDArray[np.float64]:
    return np.array(json.loads(shown))


def graph(application: Application, collection: str) -> tuple[dict[int, set[int]], dict[int, str]]:
    """Passage -> the entities that its sentences name, by joining row with row; and the entities' names."""
    held: dict[int, set[int]] = defaultdict(set)
    passage = {row["id"]: row["passage_id"] for row in state.rows(application, collection, "sentence")}
    for link in state.rows(application, collection, "entity_sentence"):
        held[passage[link["sentence_id"]]].add(link["entity_id"])
    return held, {row["id"]: row["name"] for row in state.rows(application, collection, "entity")}


def test_links_know_the_passages_of_their_sentences(application: Application, curie: str) -> None:
    passage = {row["id"]: row["passage_id"] for row in state.rows(application, curie, "sentence")}
    links = state.rows(application, curie, "entity_sentence")
    assert links
    assert all(link["passage_id"] == passage[link["sentence_id"]] for link in links)


def test_members_name_what_their_sentences_name(application: Application, curie: str, focus: Focus) -> None:
    held, names = graph(application, curie)
    pool = sorted(held)[:2][::-1]
    asked = [next(entity for entity in names if all(entity not in held[passage] for passage in pool))]
    with application.database.read() as reader:
        found = second_look.members(reader, focus, pool, asked, MOST)
        alone = second_look.members(reader, focus, [], [], MOST)
        capped = second_look.members(reader, focus, pool, asked, 1)

    wanted = held[pool[0]] | held[pool[1]] | set(asked)
    counts = {entity: sum(entity in of for of in held.values()) for entity in wanted}
    assert {entity: (known.name, known.passages) for entity, known in found.entities.items()} == {
        entity: (names[entity], counts[entity]) for entity in wanted
    }
    assert max(counts.values()) > 1
    assert {known.passages for known in capped.entities.values()} == {1}
    assert found.passages == pool
    sentences = state.rows(application, curie, "sentence")
    for passage, sentence, similarity in zip(pool, found.sentences, found.similarities, strict=True):
        cosines = {
            row["id"]: float(vector(row["embedding"]) @ focus.vector)
            for row in sentences
            if row["passage_id"] == passage
        }
        assert sentence == max(cosines, key=lambda one: cosines[one])
        assert similarity == pytest.approx(cosines[sentence], abs=1e-6)
    assert (alone.passages, alone.entities) == ([], {})


@pytest.mark.parametrize("evolved", [False, True])
def test_candidates_share_cosines_and_entities(
    application: Application, curie: str, focus: Focus, evolved: bool
) -> None:
    if evolved:
        evolve(application, curie, vectors={"warsaw": application.embedder.embed(["a city on a river"])[0]})
        with application.database.read() as reader:
            focus = replace(focus, collection=collections.find(reader, curie), use_memory=True)
    assert focus.evolved == evolved
    held, _ = graph(application, curie)
    passages = sorted(held)
    with application.database.read() as reader:
        members = second_look.members(reader, focus, passages[:3], [], MOST)
        entities = sorted(members.entities)[::2]
        found = second_look.shared(reader, focus, passages, members.sentences, entities)
        nothing = second_look.shared(reader, focus, [], members.sentences, entities)

    keys = {row["id"]: vector(row["embedding"]) for row in state.rows(application, curie, "passage")}
    if evolved:
        own = {row["passage_id"]: vector(row["vector"]) for row in state.rows(application, curie, "passage_key")}
        assert own
        keys |= own
    vectors = {row["id"]: vector(row["embedding"]) for row in state.rows(application, curie, "sentence")}
    assert found.keys() == set(passages)
    for passage, shared in found.items():
        expected = [float(vectors[sentence] @ keys[passage]) for sentence in members.sentences]
        assert list(shared.across) == pytest.approx(expected, abs=1e-6)
        assert set(shared.entities) == held[passage] & set(entities)
    assert nothing == {}


def test_other_collections_have_no_say(application: Application, curie: str, focus: Focus) -> None:
    own = [row["id"] for row in state.rows(application, curie, "passage")]
    entity = state.rows(application, curie, "entity")[0]["id"]
    elsewhere = replace(focus, collection=replace(focus.collection, id=focus.collection.id + 1_000_000))
    with application.database.read() as reader:
        found = second_look.members(reader, elsewhere, own, [entity], MOST)
        assert (found.passages, found.entities) == ([], {})
        assert second_look.shared(reader, elsewhere, own, [], []) == {}
