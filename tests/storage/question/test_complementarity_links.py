"""What reranking reads, held against the graph row by row."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from engram.composition.container import Application
from engram.core.ranking.profiles import Policy
from engram.storage.carried_statements import CarriedStatement
from engram.storage.corpus import collections
from engram.storage.database import Reader
from engram.storage.question import complementarity_links
from engram.storage.question.complementarity_links import (
    NamedEntity,
    PoolLinks,
    load_entities_of_passages,
    load_named_entities,
)
from engram.storage.question.query_focus import Focus
from tests.support import state
from tests.support.encoder import HALF_PRECISION
from tests.support.keys import evolve

MOST_LINKS = 1000


@pytest.fixture
def focus(application: Application, curie: str) -> Focus:
    question = application.models.embedder.embed(["Which river flows through the city where Curie was born?"])[0]
    with application.database.read() as reader:
        return Focus(collections.find(reader, curie), question, limits=application.models.limits, policy=Policy())


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


def look(
    reader: Reader,
    focus: Focus,
    pool: Sequence[int],
    passages: Sequence[int],
) -> PoolLinks:
    return complementarity_links.look(reader, focus, pool, np.array(passages, dtype=np.int64))


def test_passages_name_what_their_sentences_name(application: Application, curie: str, focus: Focus) -> None:
    held, names = graph(application, curie)
    passages, target = sorted(held), focus.collection.id
    with application.database.read() as reader:
        named = load_entities_of_passages(reader, target, [*passages, max(passages) + 1])
        known = load_named_entities(reader, target, [*names, max(names) + 1], MOST_LINKS)
        capped = load_named_entities(reader, target, list(names), 1)
        elsewhere = load_entities_of_passages(reader, target + 1_000_000, passages)
        nobody = load_named_entities(reader, target + 1_000_000, list(names), MOST_LINKS)
    assert {passage: entities.tolist() for passage, entities in named.items()} == {
        passage: sorted(entities) for passage, entities in held.items()
    }
    counts = {entity: sum(entity in of for of in held.values()) for entity in names}
    assert known == {entity: NamedEntity(name, counts[entity]) for entity, name in names.items()}
    assert max(counts.values()) > 1
    assert {entity.passages for entity in capped.values()} == {1}
    assert (elsewhere, nobody) == ({}, {})


def test_a_member_is_compared_by_its_best_sentence(application: Application, curie: str, focus: Focus) -> None:
    pool = sorted(state.passages(application, curie).values())[:2][::-1]
    with application.database.read() as reader:
        found = look(reader, focus, pool, sorted(pool))
    assert found.members == pool
    sentences = state.rows(application, curie, "sentence")
    for passage, sentence, similarity in zip(pool, found.sentences, found.similarities, strict=True):
        cosines = {
            row["id"]: float(vector(row["embedding"]) @ focus.vector)
            for row in sentences
            if row["passage_id"] == passage
        }
        assert sentence == max(cosines, key=lambda one: cosines[one])
        assert similarity == pytest.approx(cosines[sentence], abs=HALF_PRECISION)


def test_a_passage_without_sentences_is_no_member(application: Application, curie: str, focus: Focus) -> None:
    passages = sorted(row["id"] for row in state.rows(application, curie, "passage"))[:3]
    with application.database.write() as writer:
        writer.execute("DELETE FROM sentence WHERE passage_id = %(id)s", {"id": passages[1]})
    with application.database.read() as reader:
        found = look(reader, focus, passages, passages)
        alone = look(reader, focus, passages[1:2], passages)
    assert found.members == [passages[0], passages[2]]
    assert found.across.shape == (2, 3)
    assert (found.across != 0).all()
    assert (alone.members, alone.sentences, alone.across.shape) == ([], [], (0, 3))


@pytest.mark.parametrize("evolved", [False, True])
def test_candidates_share_cosines(application: Application, curie: str, focus: Focus, evolved: bool) -> None:
    if evolved:
        evolve(application, curie, vectors={"warsaw": application.models.embedder.embed(["a city on a river"])[0]})
        with application.database.read() as reader:
            focus = replace(focus, collection=collections.find(reader, curie), use_memory=True)
    assert focus.evolved == evolved
    passages = sorted(state.passages(application, curie).values())
    with application.database.read() as reader:
        found = look(reader, focus, passages[2::-1], passages)

    keys = {row["id"]: vector(row["embedding"]) for row in state.rows(application, curie, "passage")}
    if evolved:
        own = {row["passage_id"]: vector(row["vector"]) for row in state.rows(application, curie, "passage_key")}
        assert own
        keys |= own
    vectors = {row["id"]: vector(row["embedding"]) for row in state.rows(application, curie, "sentence")}
    expected = [[vectors[sentence] @ keys[passage] for passage in passages] for sentence in found.sentences]
    np.testing.assert_allclose(found.across, expected, atol=HALF_PRECISION)


@pytest.mark.parametrize("order", [[1, 0, 2], [0, 0, 1]])
def test_candidates_in_another_order_are_refused(
    application: Application, curie: str, focus: Focus, order: list[int]
) -> None:
    """Cosines go to candidates by their places."""
    passages = sorted(row["id"] for row in state.rows(application, curie, "passage"))
    with application.database.read() as reader, pytest.raises(ValueError, match="in id order"):
        look(reader, focus, passages[:2], [passages[at] for at in order])


def test_other_collections_have_no_say(application: Application, curie: str, focus: Focus) -> None:
    own = [row["id"] for row in state.rows(application, curie, "passage")]
    elsewhere = replace(focus, collection=replace(focus.collection, id=focus.collection.id + 1_000_000))
    with application.database.read() as reader:
        assert look(reader, elsewhere, own[:2], []).members == []


def test_carried_statement_reads_the_same_as_alone(application: Application, curie: str, focus: Focus) -> None:
    passages = [row["id"] for row in state.rows(application, curie, "passage")]
    numbers = "SELECT 0.1::float8 + 0.2 AS sum, %(many)s::float8[] AS many"
    with application.database.read() as reader:
        aside = CarriedStatement(numbers, {"many": [1 / 3, 0.0, 1e-300]})
        found = complementarity_links.look(reader, focus, passages[:1], np.array(passages), aside)
    assert list(found.aside) == [{"sum": 0.1 + 0.2, "many": [1 / 3, 0.0, 1e-300]}]
