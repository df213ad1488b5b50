"""Passages by their keys, several searches at once held against one by one."""

import pytest

from engram.composition.container import Application
from engram.storage.corpus import collections
from engram.storage.corpus.collections import Collection
from engram.storage.question import passages_by_key
from engram.storage.question.metadata_filter import compile_filter
from engram.storage.question.passages_by_key import KeySearch
from engram.storage.question.query_focus import Focus
from tests.conftest import CURIE, Ingest
from tests.support import keys, state

QUESTIONS = ("Which river flows into the sea?", "What is radioactive?", "Where is the capital of Japan?")


@pytest.fixture
def found(application: Application, collection: str, ingest: Ingest) -> Collection:
    """The five passages, each with its place among the metadata; another collection holds the same."""
    for name in (collection, f"{collection}-other"):
        ingest(*(dict(p) | {"metadata": {"even": n % 2 == 0}} for n, p in enumerate(CURIE)), into=name)
    with application.database.read() as reader:
        return collections.find(reader, collection)


def searches(application: Application) -> list[KeySearch]:
    """Deep and shallow ones, with and without metadata."""
    vectors = application.models.embedder.embed(list(QUESTIONS))
    return [
        KeySearch(vectors[0], 1),
        KeySearch(vectors[1], 3, {"even": True}),
        KeySearch(vectors[2], 50),
        KeySearch(vectors[0], 2, {"even": False}),
        KeySearch(vectors[0], 2, {}),
        KeySearch(vectors[1], 2, {"odd": True}),
        KeySearch(vectors[2], 2, {"even": {"$ne": True}}),
    ]


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_searches_made_at_once_find_what_each_finds_alone(
    application: Application, found: Collection, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passages_by_key, "SEARCHES_AT_ONCE", at_once)
    asked = searches(application)
    with application.database.read() as reader:
        alone = [
            list(
                passages_by_key.find_nearest_passages(
                    reader,
                    Focus(found, one.vector, limits=application.models.limits, filter=compile_filter(one.filter)),
                    one.depth,
                )
            )
            for one in asked
        ]
        together = passages_by_key.find_nearest_to_each(reader, found, asked, application.models.limits)
    assert together == alone
    assert [len(ids) for ids in together] == [1, 3, 5, 2, 2, 0, 2]


def test_no_searches_give_no_results(application: Application, found: Collection) -> None:
    with application.database.read() as reader:
        assert passages_by_key.find_nearest_to_each(reader, found, [], application.models.limits) == []


def test_base_key_search_skips_evolved_keys(application: Application, found: Collection) -> None:
    (river, *_) = searches(application)
    with application.database.read() as reader:
        before = passages_by_key.find_nearest_to_each(reader, found, [river], application.models.limits)
    keys.evolve(application, found.name, vectors={"tokyo": river.vector})
    with application.database.read() as reader:
        evolved = collections.find(reader, found.name)
        assert evolved.key_generation == 1
        assert passages_by_key.find_nearest_to_each(reader, evolved, [river], application.models.limits) == before
    assert before != [[state.passages(application, found.name)["tokyo"]]]
