"""Re-keying: what keys are made of, one swap of them all, and what may come in between."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from engram.composition.container import Application
from engram.context.errors import ConflictError, IdempotencyConflictError, NotFoundError
from engram.core.passage_keys.key_text import KeyBuilding
from engram.providers.language import ANALYSER, terms
from engram.services.corpus import batch_planning, batch_writing, rekey
from engram.services.corpus.graph_builder import GraphBuilder
from engram.services.corpus.rekey import Rebase, RekeyService
from engram.services.encoders.encoder import Encoder
from engram.services.jobs.job_runner import MAX_ATTEMPTS, Runner
from engram.storage.corpus import collections
from engram.storage.corpus import lexical_index as storage
from engram.storage.database import Writer
from engram.storage.jobs.jobs import Job
from engram.wings.published.parts import published_of
from tests.conftest import CURIE, Ingest
from tests.services.corpus.test_ingest_jobs import DisturbedEncoder
from tests.support import lexical, state
from tests.support.encoder import HALF_PRECISION
from tests.support.evolving import verdict
from tests.support.jobs import make_due, run_again, runner

UNTITLED = {"id": "radium", "text": "Radium was discovered in Paris in 1898. It glows. It is rare. It is costly."}
CORPUS: Sequence[dict[str, Any]] = (*map(dict, CURIE), UNTITLED)
KEY_TEXTS: Mapping[KeyBuilding, dict[str, str]] = {
    "full": {p["id"]: f"{p['title']}. {p['text']}" if "title" in p else p["text"] for p in CORPUS},
    "title": {p["id"]: p.get("title", "Radium was discovered in Paris in 1898.") for p in CORPUS},
    "abstract": {p["id"]: f"{p['title']}. {p['text']}" for p in CURIE}
    | {"radium": "Radium was discovered in Paris in 1898. It glows. It is rare."},
    "keywords": {
        "curie": "Marie, Curie, born, Warsaw, 1867, discovered, polonium, 1898",
        "warsaw": "Warsaw, lies, Vistula, capital, Poland",
        "vistula": "Vistula, flows, Baltic, Sea",
        "polonium": "Polonium, named, Poland, radioactive",
        "tokyo": "Tokyo, capital, Japan, lies, Bay",
        "radium": "Radium, discovered, Paris, 1898, glows, rare, costly",
    },
}
KEYS = ("passage", *state.LEXICAL)
QUESTIONS = ("Who discovered polonium?", "What is the capital of Poland?", "What glows in Paris?")


@pytest.fixture
def corpus(ingest: Ingest, collection: str) -> str:
    assert ingest(*CORPUS)["created"] == len(CORPUS)
    return collection


def worker(
    application: Application, embedder: Any = None, rebase: Rebase | None = None, batch_size: int = 4
) -> Runner:
    """Ingests and makes keys anew as told."""
    encoder = Encoder(embedder or application.models.embedder)
    how: dict[str, Any] = {"batch_size": batch_size, "rebase": rebase}
    return runner(
        application,
        ingest=GraphBuilder(
            application.database,
            encoder,
            application.models.language,
            application.corpus.kinds,
            replay_sentences=application.corpus.replay_sentences,
            observers=application.hooks.passage_observers,
            **how,
        ),
        rekey=RekeyService(application.database, encoder, **how),
    )


def rekey_collection(application: Application, name: str, building: KeyBuilding, **how: Any) -> Job:
    job_id = application.corpus.rekey.request(application.auth.access.scope(name), building)
    worker(application, **how).run_ready()
    return application.jobs.jobs.job(application.auth.access.scope(name), job_id)


def vectors(application: Application, name: str) -> dict[str, NDArray[np.float32]]:
    """External id -> dense key."""
    with application.database.read() as reader:
        found = reader.rows(
            "SELECT external_id, embedding::vector FROM passage WHERE collection_id = %(c)s",
            {"c": collections.find(reader, name).id},
        )
    return {row[0]: row[1].to_numpy() for row in found}


def assert_keyed(application: Application, name: str, building: KeyBuilding, texts: Mapping[str, str]) -> None:
    """All keys of the collection are made of these texts and of nothing else."""
    assert application.auth.access.scope(name).collection.key_building == building
    stored = vectors(application, name)
    assert set(stored) == set(texts)
    expected = application.models.embedder.embed(list(texts.values()))
    np.testing.assert_allclose(np.stack([stored[key] for key in texts]), expected, atol=HALF_PRECISION)
    tokens = {key: terms(text, "en") for key, text in texts.items()}
    assert lexical.load_index(application, name) == lexical.fresh({key: Counter(t) for key, t in tokens.items()})
    for question in QUESTIONS:
        found = lexical.search(application, name, Counter(terms(question, "en")))
        assert found == pytest.approx(lexical.reference(tokens, terms(question, "en")), rel=1e-5)


Answer = tuple[str, str, tuple[str, ...], tuple[float, ...]]


def answers(application: Application, name: str) -> Iterator[Answer]:
    """(by what keys, question, passages, scores), each found by one statement."""
    names = {number: external_id for external_id, number in state.passages(application, name).items()}
    for question in QUESTIONS:
        dense = application.retrieval.dense.search(application.auth.access.scope(name), question, 3)
        yield "dense", question, tuple(found for found, _ in dense), tuple(score for _, score in dense)
        with application.database.read() as reader:
            statement = storage.build_word_search(evolved=False)
            weights = Counter(terms(question, "en"))
            words = storage.search(reader, collections.find(reader, name), weights, 9, statement)
        yield "words", question, tuple(names[found] for found in words), tuple(words.values())


class TestKeys:
    @pytest.mark.parametrize("building", get_args(KeyBuilding)[1:])
    def test_they_are_made_of_the_new_key_texts(
        self, application: Application, corpus: str, building: KeyBuilding
    ) -> None:
        kept = ("sentence", "entity", "entity_sentence", "time_expression")
        before, counts = state.snapshot(application, corpus, kept), state.counts(application, corpus)
        assert_keyed(application, corpus, "full", KEY_TEXTS["full"])

        job = rekey_collection(application, corpus, building)

        assert (job.status, job.payload, job.error) == ("succeeded", {"key_building": building}, None)
        assert (job.received, job.updated, job.unchanged, job.created) == (len(CORPUS), len(CORPUS), 0, 0)
        assert_keyed(application, corpus, building, KEY_TEXTS[building])
        assert state.snapshot(application, corpus, kept) == before
        assert state.counts(application, corpus) == counts
        assert state.rows(application, corpus, "staged_key") == []

    def test_later_passages_use_the_new_key_building(
        self, application: Application, ingest: Ingest, collection: str
    ) -> None:
        ingest(CORPUS[0], CORPUS[5] | {"text": "To be replaced."})
        rekey_collection(application, collection, "title")
        assert ingest(*CORPUS[1:])["updated"] == 1

        assert_keyed(application, collection, "title", KEY_TEXTS["title"])

    def test_back_to_full_everything_is_as_it_was(self, application: Application, corpus: str) -> None:
        """Dense keys up to the last bits, which depend on what a text is embedded together with."""
        before, index = vectors(application, corpus), lexical.load_index(application, corpus)
        passages = state.rows(application, corpus, "passage", ["embedding"])
        answered = list(answers(application, corpus))
        for building in ("keywords", "title", "abstract"):
            rekey_collection(application, corpus, building)
            assert list(answers(application, corpus)) != answered

        rekey_collection(application, corpus, "full")

        assert lexical.load_index(application, corpus) == index
        assert state.rows(application, corpus, "passage", ["embedding"]) == passages
        after = vectors(application, corpus)
        for key, vector in before.items():
            np.testing.assert_allclose(after[key], vector, atol=1e-6)

    def test_terms_of_an_earlier_analysis_are_replaced(
        self, application: Application, ingest: Ingest, corpus: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        index, before = lexical.load_index(application, corpus), vectors(application, corpus)
        outdated = [{"id": f"old{n}", "text": f"Stones number {n} were found on many beaches."} for n in range(5)]
        ingest(*outdated, into=corpus)
        expected = lexical.load_index(application, corpus)
        for passage in outdated:
            application.corpus.ingest.delete_passage(application.auth.access.scope(corpus), passage["id"])
        assert lexical.load_index(application, corpus) == index
        with monkeypatch.context() as earlier:
            earlier.setattr(batch_planning, "terms", lambda text, language: text.upper().split())
            earlier.setattr(batch_writing, "ANALYSER", ANALYSER - 1)
            ingest(*outdated, into=corpus)
        assert lexical.load_index(application, corpus) != expected
        told: list[int] = []

        job = rekey_collection(
            application, corpus, "full", rebase=lambda writer, collection, passages: told.extend(passages)
        )

        assert (job.status, job.received, job.updated, job.unchanged) == ("succeeded", 11, 5, 6)
        assert lexical.load_index(application, corpus) == expected
        ids = state.passages(application, corpus)
        assert sorted(told) == sorted(ids[passage["id"]] for passage in outdated)
        assert {row["analyser"] for row in state.rows(application, corpus, "lexical_passage")} == {ANALYSER}
        after = vectors(application, corpus)
        for key, vector in before.items():
            np.testing.assert_array_equal(after[key], vector)
        assert rekey_collection(application, corpus, "full").updated == 0

    def test_another_collection_keeps_its_keys(self, application: Application, ingest: Ingest, corpus: str) -> None:
        other = f"{corpus}-other"
        ingest(*CORPUS, into=other)
        before = state.snapshot(application, other, KEYS)
        rekey_collection(application, corpus, "title")

        assert state.snapshot(application, other, KEYS) == before
        assert application.auth.access.scope(other).collection.key_building == "full"


class TestSwap:
    def test_queries_see_all_old_keys_until_they_see_all_new_ones(
        self, application: Application, corpus: str
    ) -> None:
        old = list(answers(application, corpus))
        within: list[Answer] = []

        job = rekey_collection(
            application, corpus, "title", rebase=lambda *_: within.extend(answers(application, corpus))
        )

        assert job.status == "succeeded"
        assert within == old
        assert list(answers(application, corpus)) != old

    def test_one_that_breaks_off_leaves_everything_as_it_was(self, application: Application, corpus: str) -> None:
        def fail(*_: Any) -> None:
            raise RuntimeError("killed")

        before = state.snapshot(application, corpus, (*KEYS, "passage_key", "key_evolution"))
        job = rekey_collection(application, corpus, "title", rebase=fail)

        assert (job.status, job.error, job.updated) == ("queued", "RuntimeError: killed", len(CORPUS))
        assert state.snapshot(application, corpus, (*KEYS, "passage_key", "key_evolution")) == before
        assert application.auth.access.scope(corpus).collection.key_building == "full"

        embedder = DisturbedEncoder(application, lambda _: None)
        assert run_again(application, worker(application, embedder)) == 1
        assert embedder.calls == 0
        assert_keyed(application, corpus, "title", KEY_TEXTS["title"])

    def test_one_that_keeps_failing_leaves_nothing_staged(self, application: Application, corpus: str) -> None:
        def fail(*_: Any) -> None:
            raise RuntimeError("no")

        job = rekey_collection(application, corpus, "title", rebase=fail)
        for _ in range(MAX_ATTEMPTS - 1):
            assert state.rows(application, corpus, "staged_key") != []
            run_again(application, worker(application, rebase=fail))

        assert application.jobs.jobs.job(application.auth.access.scope(corpus), job.id).status == "failed"
        assert state.rows(application, corpus, "staged_key") == []
        assert_keyed(application, corpus, "full", KEY_TEXTS["full"])

    def test_rekey_stopped_within_the_swap_starts_it_again(self, application: Application, corpus: str) -> None:
        job_id = application.corpus.rekey.request(application.auth.access.scope(corpus), "title")
        # Three times while staging, before the first chunk of the swap; then stop.
        answers = iter([False] * 4 + [True] * 9)
        index = worker(application)
        index.run_ready(lambda: next(answers))

        assert application.jobs.jobs.job(application.auth.access.scope(corpus), job_id).status == "queued"
        assert_keyed(application, corpus, "full", KEY_TEXTS["full"])
        assert index.run_ready() == 1
        assert_keyed(application, corpus, "title", KEY_TEXTS["title"])

    def test_one_that_is_cancelled_leaves_the_old_keys_and_nothing_staged(
        self, application: Application, corpus: str
    ) -> None:
        def cancel(_: Sequence[str]) -> None:
            if slow.calls == 2:
                application.jobs.jobs.cancel(application.auth.access.scope(corpus), job_id)

        slow = DisturbedEncoder(application, cancel)
        job_id = application.corpus.rekey.request(application.auth.access.scope(corpus), "title")
        assert worker(application, slow, batch_size=2).run_ready() == 1

        job = _job(application, corpus, job_id)
        assert (job.status, job.received, job.updated) == ("cancelled", 6, 4)
        assert state.rows(application, corpus, "staged_key") == []
        assert_keyed(application, corpus, "full", KEY_TEXTS["full"])
        application.corpus.rekey.request(application.auth.access.scope(corpus), "title")  # it is open no more


class TestStaging:
    def test_a_stopped_job_goes_on_where_it_was(self, application: Application, corpus: str) -> None:
        job_id = application.corpus.rekey.request(application.auth.access.scope(corpus), "abstract")
        answers = iter([False, *[True] * 9])
        worker(application, batch_size=4).run_ready(lambda: next(answers))

        halfway = application.jobs.jobs.job(application.auth.access.scope(corpus), job_id)
        assert (halfway.status, halfway.received, halfway.updated) == ("queued", 6, 4)
        assert_keyed(application, corpus, "full", KEY_TEXTS["full"])

        texts: list[str] = []
        worker(application, DisturbedEncoder(application, texts.extend)).run_ready()
        assert texts == [KEY_TEXTS["abstract"]["tokyo"], KEY_TEXTS["abstract"]["radium"]]
        assert application.jobs.jobs.job(application.auth.access.scope(corpus), job_id).status == "succeeded"
        assert_keyed(application, corpus, "abstract", KEY_TEXTS["abstract"])

    def test_passages_deleted_meanwhile_are_gone(self, application: Application, corpus: str) -> None:
        def delete(_: Sequence[str]) -> None:
            # The first of the batch that is being embedded, and one that waits.
            if racing.calls == 1:
                application.corpus.ingest.delete_passage(application.auth.access.scope(corpus), "curie")
                application.corpus.ingest.delete_passage(application.auth.access.scope(corpus), "radium")
            # And one that is staged.
            if racing.calls == 2:
                application.corpus.ingest.delete_passage(application.auth.access.scope(corpus), "warsaw")

        racing = DisturbedEncoder(application, delete)
        job = rekey_collection(application, corpus, "title", embedder=racing)

        assert (job.status, job.received, job.updated) == ("succeeded", 3, 3)
        left = {key: text for key, text in KEY_TEXTS["title"].items() if key in {"vistula", "polonium", "tokyo"}}
        assert_keyed(application, corpus, "title", left)

    def test_passages_ingested_between_attempts_are_staged(self, application: Application, corpus: str) -> None:
        """Passages that began to arrive before the request, and had arrived once the job was under way."""
        changed = [{"id": "curie", "title": "Maria", "text": "Maria sang."}, {"id": "new", "text": "Bees fly."}]
        bodies = [{"title": None, "metadata": {}, "sentences": None} | dict(passage) for passage in changed]
        reception = application.corpus.ingest.receive(application.auth.access.prepare_opening(corpus))
        reception.add(list(enumerate(bodies, start=1)), [])
        job_id = application.corpus.rekey.request(application.auth.access.scope(corpus), "title")
        answers = iter([False, *[True] * 9])
        worker(application).run_ready(lambda: next(answers))
        reception.finish()

        assert worker(application).run_ready() == 2

        assert _job(application, corpus, job_id).updated == 7
        assert_keyed(application, corpus, "title", KEY_TEXTS["title"] | {"curie": "Maria", "new": "Bees fly."})

    def test_a_collection_deleted_meanwhile_stays_deleted(self, application: Application, corpus: str) -> None:
        target = state.collection_id(application, corpus)
        racing = DisturbedEncoder(
            application,
            lambda _: application.corpus.ingest.delete_collection(application.auth.access.scope(corpus)),
        )
        application.corpus.rekey.request(application.auth.access.scope(corpus), "title")

        assert worker(application, racing).run_ready() == 0
        with pytest.raises(NotFoundError):
            application.auth.access.scope(corpus)
        with application.database.read() as reader:
            for table in ("staged_key", "job", "lexical_posting"):
                assert not reader.scalar(f"SELECT count(*) FROM {table} WHERE collection_id = %(c)s", {"c": target})


class TestOvertakenWorkers:
    """A worker that was thought lost goes on beside the one that took its job over; nothing may mix."""

    def test_a_batch_planned_for_the_old_keys_is_not_written(self, application: Application, corpus: str) -> None:
        def overtake(_: Sequence[str]) -> None:
            if slow.calls == 1:
                make_due(application)
                assert worker(application).run_ready() == 2

        slow = DisturbedEncoder(application, overtake)
        job = state.stage_passages(application, corpus, {"id": "new", "title": "Bee", "text": "Bees fly."})
        application.corpus.rekey.request(application.auth.access.scope(corpus), "title")

        assert worker(application, slow).run_ready() == 0

        assert _job(application, corpus, job).created == 1
        assert_keyed(application, corpus, "title", KEY_TEXTS["title"] | {"new": "Bee"})

    def test_passages_changed_before_the_swap_are_staged(
        self, application: Application, corpus: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def rename_twice(turn: int) -> None:
            if turn < 2:
                self._rename(application, corpus, turn)

        with change_before_swap(monkeypatch, rename_twice):
            job = rekey_collection(application, corpus, "title")

        assert (job.status, job.attempts) == ("succeeded", 0)
        assert vectors(application, corpus)["tokyo"] == pytest.approx(
            application.models.embedder.embed(["Tokyo 1"])[0], abs=HALF_PRECISION
        )

    def test_it_does_not_try_for_ever(
        self, application: Application, corpus: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with change_before_swap(monkeypatch, lambda turn: self._rename(application, corpus, turn)) as turns:
            job = rekey_collection(application, corpus, "title")

        assert len(turns) == rekey.MAX_ROUNDS
        assert (job.status, job.attempts) == ("queued", 1)
        assert job.error is not None
        assert "passages changed" in job.error

    @pytest.mark.parametrize("at", [1, 3])
    def test_overtaken_rekey_worker_changes_nothing(self, application: Application, corpus: str, at: int) -> None:
        job_id = application.corpus.rekey.request(application.auth.access.scope(corpus), "title")
        rebased: list[int] = []

        def count(_: Writer, collection_id: int, passages: Sequence[int]) -> None:
            rebased.append(len(passages))

        def overtake(_: Sequence[str]) -> None:
            if slow.calls == at:
                make_due(application)
                assert worker(application, rebase=count, batch_size=2).run_ready() == 1

        slow = DisturbedEncoder(application, overtake)
        assert worker(application, slow, rebase=count, batch_size=2).run_ready() == 0

        assert rebased == [len(CORPUS)]
        done = _job(application, corpus, job_id)
        assert (done.status, done.updated) == ("succeeded", len(CORPUS))
        assert state.rows(application, corpus, "staged_key") == []
        assert_keyed(application, corpus, "title", KEY_TEXTS["title"])

    def _rename(self, application: Application, name: str, turn: int) -> None:
        with application.database.write() as writer:
            writer.execute(
                "UPDATE passage SET title = %(title)s, content_hash = %(hash)s WHERE external_id = 'tokyo' AND"
                " collection_id = %(c)s",
                {"title": f"Tokyo {turn}", "hash": bytes([turn]), "c": collections.find(writer, name).id},
            )


class TestEvolvedKeys:
    def test_they_are_made_anew_after_the_keys(self, application: Application, corpus: str) -> None:
        told: list[tuple[list[int], set[str]]] = []

        def rebase(writer: Writer, collection_id: int, passages: Sequence[int]) -> None:
            indexed = writer.rows("SELECT term FROM lexical_term WHERE collection_id = %(c)s", {"c": collection_id})
            told.append((list(passages), {row[0] for row in indexed}))

        rekey_collection(application, corpus, "title", rebase=rebase)

        expected = {term for text in KEY_TEXTS["title"].values() for term in terms(text, "en")}
        assert told == [(sorted(state.passages(application, corpus).values()), expected)]

    def test_ingest_tells_of_passages_that_changed_and_of_no_others(
        self, application: Application, corpus: str
    ) -> None:
        told: list[tuple[list[int], set[str]]] = []

        def rebase(writer: Writer, collection_id: int, passages: Sequence[int]) -> None:
            indexed = writer.rows("SELECT term FROM lexical_term WHERE collection_id = %(c)s", {"c": collection_id})
            told.append((list(passages), {row[0] for row in indexed}))

        metadata = CORPUS[1] | {"metadata": {"a": 1}}
        changed = CORPUS[2] | {"text": "Bees fly."}
        state.stage_passages(application, corpus, CORPUS[0], metadata, changed, {"id": "new", "text": "Fish swim."})
        worker(application, rebase=rebase).run_ready()
        state.stage_passages(application, corpus, {"id": "newer", "text": "Fish swim."})
        worker(application, rebase=rebase).run_ready()

        ((passages, indexed),) = told
        assert passages == [state.passages(application, corpus)["vistula"]]
        assert {"bee", "fli"} <= indexed
        assert "baltic" not in indexed

    @pytest.mark.wing("published")
    def test_they_come_back_with_the_keys(self, application: Application, corpus: str) -> None:
        """Through the application's own wiring: gains, memories and evolved keys of other base keys, and again."""
        verdict(application, corpus)
        assert published_of(application).evolve.evolve(application.auth.access.scope(corpus)) is not None
        before = list_evolved(application, corpus)

        rekey_by_application(application, corpus, "title")
        ((passage, vector, gains),) = list_evolved(application, corpus)
        base = vectors(application, corpus)["vistula"]
        strength = published_of(application).key_learning.rules.strength
        assert np.sqrt(1 - strength**2) - 1e-6 < vector @ base < 1 - 1e-4
        assert passage == before[0][0]
        assert gains != pytest.approx(before[0][2])

        rekey_by_application(application, corpus, "full")
        ((passage, vector, gains),) = list_evolved(application, corpus)
        assert passage == before[0][0]
        assert gains == pytest.approx(before[0][2], abs=1e-6)
        np.testing.assert_allclose(vector, before[0][1], atol=1e-6)


class TestRequests:
    def test_of_two_at_once_one_is_refused(self, application: Application, corpus: str) -> None:
        first = application.corpus.rekey.request(application.auth.access.scope(corpus), "title")
        with pytest.raises(ConflictError, match=rf"rekey job under way \(title\): {first}"):
            application.corpus.rekey.request(application.auth.access.scope(corpus), "abstract", "refused")
        worker(application).run_ready()

        application.corpus.rekey.request(
            application.auth.access.scope(corpus), "abstract", "refused"
        )  # a refusal is no answer that is remembered
        worker(application).run_ready()
        assert application.auth.access.scope(corpus).collection.key_building == "abstract"

    def test_the_same_request_again_is_the_same_job(self, application: Application, corpus: str) -> None:
        made: list[Any] = []
        state.together(
            *[
                lambda: made.append(
                    application.corpus.rekey.request(application.auth.access.scope(corpus), "title", "once")
                )
            ]
            * 6
        )
        worker(application).run_ready()

        assert {
            application.corpus.rekey.request(application.auth.access.scope(corpus), "title", "once"),
            *made,
        } == {made[0]}
        with pytest.raises(IdempotencyConflictError):
            application.corpus.rekey.request(application.auth.access.scope(corpus), "full", "once")
        assert application.auth.access.scope(corpus).collection.key_building == "title"


def rekey_by_application(application: Application, name: str, building: KeyBuilding) -> None:
    application.corpus.rekey.request(application.auth.access.scope(name), building)
    application.jobs.runner.run_ready()
    assert application.auth.access.scope(name).collection.key_building == building


def list_evolved(application: Application, name: str) -> list[tuple[int, NDArray[np.float32], list[float]]]:
    """(passage, evolved key, gains of its credits) of every passage that has one."""
    with application.database.read() as reader:
        rows = reader.rows(
            """
            SELECT key.passage_id, key.vector, ARRAY(
                       SELECT gain FROM key_credit credit WHERE credit.collection_id = key.collection_id
                         AND credit.passage_id = key.passage_id ORDER BY event_id, unit_id
                   )
            FROM passage_key key WHERE key.collection_id = %(c)s ORDER BY 1
            """,
            {"c": collections.find(reader, name).id},
        )
    return [(row[0], row[1].to_numpy(), row[2]) for row in rows]


def _job(application: Application, name: str, job_id: Any) -> Job:
    return application.jobs.jobs.job(application.auth.access.scope(name), job_id)


@contextmanager
def change_before_swap(monkeypatch: pytest.MonkeyPatch, change: Callable[[int], None]) -> Iterator[list[int]]:
    """Have something happen between the last check that all is staged and the swap; the turns so far."""
    turns: list[int] = []
    lock = collections.lock_graph

    def change_and_lock(writer: Writer, collection_id: int) -> bool:
        turns.append(len(turns))
        change(turns[-1])
        return lock(writer, collection_id)

    with monkeypatch.context() as patched:
        patched.setattr(collections, "lock_graph", change_and_lock)
        yield turns
