"""Keys that a process keeps, held against what Postgres finds at the same moment."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.providers.embedder import Embedder
from engram.services.question import caches
from engram.services.question.caches import PassageKeyCache
from engram.services.question.query import Query
from engram.storage.corpus import collections, current_vectors
from engram.storage.corpus.current_vectors import Current
from engram.storage.database import Reader
from engram.storage.question import passages_by_key
from engram.storage.question.metadata_filter import compile_filter
from engram.storage.question.query_focus import Focus
from engram.wings.published.parts import published_of
from tests.conftest import CURIE
from tests.support import evolving, state, threads, undo
from tests.support.databases import application_on
from tests.support.keys import statements

pytestmark = pytest.mark.wing("published")
QUESTIONS = ("Which river flows into the sea?", "What is radioactive?", "Where was Marie Curie born?", "1898")
ROOM = 2**20
READ = "string_agg(vector_send"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of any collection are kept once they are asked for."""
    monkeypatch.setattr(caches, "LEAST_PASSAGES", 1)
    monkeypatch.setattr(caches, "QUESTIONS_BEFORE_READ", 1)


@pytest.fixture(scope="module")
def alone(own: Servers, settings: Settings, application: Application, second: Embedder) -> Iterator[Application]:
    """An application whose jobs and verdicts nobody else does."""
    with application_on(own, settings, application) as services:
        services.models.embedder_also = second
        yield services


@pytest.fixture
def taught(alone: Application, collection: str) -> str:
    """A collection with evolved keys, and verdicts that wait to be applied."""
    state.stage_passages(alone, collection, *CURIE, key="first")
    alone.jobs.runner.run_ready()
    undo.apply(alone, collection, undo.stream(alone, collection, 12, seed=5))
    evolving.evolve(alone, alone.auth.access.scope(collection))
    return collection


def focus(application: Application, reader: Reader, name: str, question: str, **more: Any) -> Focus:
    found = collections.find(reader, name)
    return Focus(
        found, application.models.encoder.embed(found, [question])[0], limits=application.models.limits, **more
    )


def find_cached(kept: PassageKeyCache, reader: Reader, asked: Focus, count: int) -> Sequence[int] | None:
    """What is kept of this moment."""
    return kept.prepare_search(reader, asked, current_vectors.find_current(reader, asked.collection.id))(count)


def assert_true(application: Application, kept: PassageKeyCache, name: str) -> None:
    """What is kept is what Postgres finds, by base keys and by evolved ones."""
    for question in QUESTIONS:
        for use_memory in (False, True):
            with application.database.snapshot() as reader:
                asked = focus(application, reader, name, question, use_memory=use_memory)
                nearest = passages_by_key.find_nearest_passages(reader, asked, 3)
                assert find_cached(kept, reader, asked, 3) == list(nearest)


def versions(application: Application, name: str) -> Current:
    with application.database.read() as reader:
        found = current_vectors.find_current(reader, collections.find(reader, name).id)
    assert found is not None
    return found


def keys_of(application: Application, name: str, *, evolved: bool) -> Mapping[int, bytes]:
    """Passage -> its key, to the bit."""
    with application.database.read() as reader:
        kept = passages_by_key.load_all_keys(reader, collections.find(reader, name).id, evolved=evolved)
    return {passage: key.tobytes() for passage, key in zip(kept.ids.tolist(), kept.keys, strict=True)}


def ingest(application: Application, name: str, *passages: Mapping[str, Any]) -> None:
    state.stage_passages(application, name, *passages, key=f"again {len(passages)} {passages[0]['text']}")
    application.jobs.runner.run_ready()


def add(application: Application, name: str) -> None:
    ingest(
        application, name, {"id": "oder", "title": "Oder", "text": "The Oder flows into the Baltic Sea as well."}
    )


def change(application: Application, name: str) -> None:
    ingest(application, name, CURIE[2] | {"text": "The Vistula is a river in Poland."})


def delete(application: Application, name: str) -> None:
    application.corpus.ingest.delete_passage(application.auth.access.scope(name), "vistula")


def rekey(application: Application, name: str) -> None:
    application.corpus.rekey.request(application.auth.access.scope(name), "title")
    application.jobs.runner.run_ready()


def reembed(application: Application, name: str) -> None:
    application.corpus.reembed.request(application.auth.access.scope(name))
    application.jobs.runner.run_ready()


def evolve(application: Application, name: str) -> None:
    undo.apply(application, name, undo.stream(application, name, 12, seed=6))
    evolving.evolve(application, application.auth.access.scope(name))


def roll_back(application: Application, name: str) -> None:
    published_of(application).evolve.roll_back(application.auth.access.scope(name), 0)


def revoke(application: Application, name: str) -> None:
    for event in state.list_applied_order(application, name):
        application.learning.revocation.revoke(application.auth.access.scope(name), event)


def forget(application: Application, name: str) -> None:
    application.revocation.learning_reset.reset(application.auth.access.scope(name))


Change = Callable[[Application, str], None]
BASE: Sequence[Change] = (add, change, delete, rekey, reembed)
EVOLVED: Sequence[Change] = (evolve, roll_back, revoke, forget)


@pytest.mark.parametrize("changed", [*BASE, *EVOLVED], ids=lambda change: change.__name__)
def test_changed_key_invalidates_the_cache(alone: Application, taught: str, changed: Change) -> None:
    """Whatever changes a key has another version: nothing that was kept before is found any more."""
    kept = PassageKeyCache(ROOM)
    assert_true(alone, kept, taught)
    before, version = {how: keys_of(alone, taught, evolved=how) for how in (False, True)}, versions(alone, taught)
    changed(alone, taught)
    after, now = {how: keys_of(alone, taught, evolved=how) for how in (False, True)}, versions(alone, taught)
    assert before[True] != after[True]
    assert (before[False] != after[False]) == (changed in BASE)
    assert (version.base_keys != now.base_keys) == (changed in BASE)
    if changed in EVOLVED:
        assert version.evolved_keys != now.evolved_keys
    assert_true(alone, kept, taught)


def test_unrelated_changes_keep_the_cache_valid(alone: Application, taught: str) -> None:
    before = versions(alone, taught)
    ingest(alone, taught, CURIE[0] | {"metadata": {"year": 1867}})
    alone.answers.question.answer(Query(text=QUESTIONS[2], scope=alone.auth.access.scope(taught)))
    assert versions(alone, taught) == before
    undo.apply(alone, taught, undo.stream(alone, taught, 6, seed=7))
    after = versions(alone, taught)
    assert replace(after, questions=before.questions) == before
    assert after.questions != before.questions, "what verdicts teach of questions has a version of its own"


def test_each_snapshot_finds_what_it_has(alone: Application, taught: str) -> None:
    """Also one from before a change, when newer keys are kept already; and these are not lost to it."""
    kept = PassageKeyCache(ROOM)
    with alone.database.snapshot() as old:
        asked = focus(alone, old, taught, QUESTIONS[0])
        before = find_cached(kept, old, asked, 2)
        delete(alone, taught)
        assert_true(alone, kept, taught)
        assert (
            find_cached(kept, old, asked, 2) == before == list(passages_by_key.find_nearest_passages(old, asked, 2))
        )
    assert_true(alone, kept, taught)


def test_a_question_without_names_reads_what_is_near_by_them(
    alone: Application, taught: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engram.services.question.walk.SCANNED_SENTENCES", 1)
    monkeypatch.setattr("engram.services.question.walk.SCANNED_PASSAGES", 2)
    query = Query(text="what flows into the sea?", scope=alone.auth.access.scope(taught), memory="off")
    found = alone.retrieval.retrieve.find(alone.retrieval.retrieve.plan(query))
    with alone.database.snapshot() as reader:
        asked = focus(alone, reader, taught, query.text)
        assert list(found.walk.near or ()) == list(passages_by_key.find_nearest_passages(reader, asked, 2))


class TestRoom:
    def sizes(self, application: Application, names: Sequence[str], kept: PassageKeyCache) -> list[int]:
        """What is kept after each collection was asked."""
        found = []
        for name in names:
            with application.database.snapshot() as reader:
                find_cached(kept, reader, focus(application, reader, name, QUESTIONS[0]), 2)
            found.append(kept.bytes)
        return found

    @pytest.fixture
    def three(self, alone: Application, collection: str) -> list[str]:
        """Collections of five passages each."""
        names = [f"{collection}-{number}" for number in range(3)]
        for name in names:
            state.stage_passages(alone, name, *CURIE, key="first")
        alone.jobs.runner.run_ready()
        return names

    def test_those_asked_for_longest_ago_go_first(self, alone: Application, three: list[str]) -> None:
        one = len(CURIE) * (alone.models.embedder.dimension * 4 + 8 + 8)
        kept = PassageKeyCache(2 * one)
        assert self.sizes(alone, three, kept) == [one, 2 * one, 2 * one]
        with statements() as sent:
            self.sizes(alone, [three[1], three[2], three[0], three[2], three[0]], kept)
        assert sum(READ in statement for statement in sent) == 1  # the first, again, in place of the second

    def test_no_more_than_fits_is_read(self, alone: Application, three: list[str]) -> None:
        for most in (0, len(CURIE) * alone.models.embedder.dimension * 4 - 1):
            with statements() as sent:
                assert self.sizes(alone, three, PassageKeyCache(most)) == [0, 0, 0]
            assert not any(READ in statement for statement in sent)

    def test_cache_fills_only_after_enough_questions(
        self, alone: Application, three: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(caches, "QUESTIONS_BEFORE_READ", 3)
        kept = PassageKeyCache(ROOM)
        assert [size > 0 for size in self.sizes(alone, [three[0]] * 4, kept)] == [False, False, True, True]
        add(alone, three[0])
        assert [size > 0 for size in self.sizes(alone, [three[0]] * 3, kept)] == [False, False, True]

    def test_what_postgres_finds_better_is_left_to_it(
        self, alone: Application, three: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kept = PassageKeyCache(ROOM)

        def finds(change: Callable[[Focus], Focus]) -> bool:
            with alone.database.snapshot() as reader:
                return (
                    find_cached(kept, reader, change(focus(alone, reader, three[0], QUESTIONS[0])), 2) is not None
                )

        def change_collection(**changed: Any) -> Callable[[Focus], Focus]:
            return lambda asked: replace(asked, collection=replace(asked.collection, **changed))

        assert finds(lambda asked: asked)
        assert not finds(lambda asked: replace(asked, filter=compile_filter({"year": 1867})))
        assert not finds(change_collection(indexed=("passage",)))
        monkeypatch.setattr(caches, "LEAST_PASSAGES", len(CURIE) + 1)
        assert not finds(lambda asked: asked)

    def test_those_who_ask_at_once_read_them_once(
        self, alone: Application, three: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whoever comes while they are read is not held up."""
        kept, reading, go_on = PassageKeyCache(ROOM), threading.Event(), threading.Event()
        read = passages_by_key.load_all_keys

        def slowly(*given: Any, **more: Any) -> Any:
            reading.set()
            assert go_on.wait(10)
            return read(*given, **more)

        monkeypatch.setattr(passages_by_key, "load_all_keys", slowly)
        first = threads.make_thread(self.sizes, alone, three[:1], kept)
        first.start()
        assert reading.wait(10)
        assert self.sizes(alone, three[:1], kept) == [0]
        go_on.set()
        first.join()
        assert kept.bytes > 0

    def test_a_failed_reading_is_made_again(
        self, alone: Application, three: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kept = PassageKeyCache(ROOM)

        def fail(*_: Any, **__: Any) -> Any:
            raise OSError("gone")

        with monkeypatch.context() as patch:
            patch.setattr(passages_by_key, "load_all_keys", fail)
            with pytest.raises(OSError, match="gone"):
                self.sizes(alone, three[:1], kept)
        assert self.sizes(alone, three[:1], kept)[0] > 0


def test_expansions_are_looked_for_as_postgres_does(alone: Application, taught: str) -> None:
    """What keys are compared with is not the question itself then."""
    kept = PassageKeyCache(ROOM)
    with alone.database.snapshot() as reader:
        asked = focus(alone, reader, taught, QUESTIONS[0])
        other = alone.models.encoder.embed(asked.collection, [QUESTIONS[1]])[0]
        expanded = replace(asked, key_vector=other)
        assert find_cached(kept, reader, expanded, 2) == list(
            passages_by_key.find_nearest_passages(reader, expanded, 2)
        )
        assert find_cached(kept, reader, expanded, 2) != find_cached(kept, reader, asked, 2)


def test_keys_are_read_as_they_are(alone: Application, taught: str) -> None:
    with alone.database.snapshot() as reader:
        target = collections.find(reader, taught).id
        plain, evolved = (
            {row.id: row.vector.to_numpy() for row in reader.rows(statement, {"c": target})}
            for statement in (
                "SELECT id, embedding::vector AS vector FROM passage WHERE collection_id = %(c)s",
                "SELECT passage_id AS id, vector FROM passage_key WHERE collection_id = %(c)s",
            )
        )
        for how, expected in ((False, plain), (True, plain | evolved)):
            kept = passages_by_key.load_all_keys(reader, target, evolved=how)
            assert dict(zip(kept.ids.tolist(), kept.keys.tolist(), strict=True)) == {
                passage: np.asarray(vector).tolist() for passage, vector in expected.items()
            }
    assert evolved
