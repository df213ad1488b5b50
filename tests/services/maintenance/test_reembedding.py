"""Re-embedding: from one encoder to another and back, with all that may come in between."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context.errors import ConflictError, InvalidRequestError, UnavailableError
from engram.providers.embedder import Embedder
from engram.services.maintenance.reembedding import ReembeddingService
from engram.services.question.query import Query
from engram.storage.jobs.jobs import Job
from tests.conftest import CURIE
from tests.support import evolving, state, threads, undo
from tests.support.databases import application_on, index_all
from tests.support.encoder import HALF_PRECISION, CountingEncoder, ResizedEncoder
from tests.support.jobs import make_due, run_again, runner
from tests.support.twins import create_twin

QUESTION = "Where was Marie Curie born?"
TEXTS = {"sentence": "text", "entity": "surface", "time_expression": "text", "question": "text",
         "expansion_unit": "text", "judged_query": "question"}  # fmt: skip
UNMOVED = ("question_support", "weight_audit", "learned_weights", "key_evidence")
NEW_PASSAGE = {"id": "radium", "title": "Radium", "text": "Radium was discovered by Marie Curie in 1898. It glows."}


@pytest.fixture(scope="module")
def alone(own: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    """A process with the first encoder only."""
    with application_on(own, settings, application) as services:
        yield services


@pytest.fixture
def both(own: Servers, settings: Settings, application: Application, second: Embedder) -> Iterator[Application]:
    """A process with both, each of them watched."""
    first = CountingEncoder(application.models.embedder)
    with application_on(own, settings, application, first) as services:
        services.models.embedder_also = CountingEncoder(second)
        yield services


def get_counting_encoder(application: Application) -> CountingEncoder:
    embedder = application.models.embedder_also
    assert isinstance(embedder, CountingEncoder)
    return embedder


def get_first_encoder(application: Application) -> CountingEncoder:
    embedder = application.models.embedder
    assert isinstance(embedder, CountingEncoder)
    return embedder


@pytest.fixture
def taught(both: Application, collection: str) -> str:
    """A collection that verdicts taught of all that they can."""
    create_twin(both, collection)
    undo.apply(both, collection, undo.stream(both, collection, 12, seed=3), batch=4)
    evolving.evolve(both, both.auth.access.scope(collection))
    return collection


def reembed_collection(application: Application, name: str, model: str | None = None) -> Job:
    scope = application.auth.access.scope(name)
    job = application.corpus.reembed.request(scope, model)
    application.jobs.runner.run_ready()
    return application.jobs.jobs.job(scope, job)


def vector(row: dict[str, Any], column: str = "embedding") -> NDArray[np.float32]:
    return np.array(row[column].strip("[]").split(","), dtype=np.float32)


def vectors(application: Application, name: str) -> dict[str, list[dict[str, Any]]]:
    """All rows with vectors that texts have."""
    return state.snapshot(application, name, ("passage", *TEXTS), ("updated_at",))


def ask_scores(application: Application, name: str) -> dict[str, float]:
    answer = application.answers.question.serve(Query(text=QUESTION, scope=application.auth.access.scope(name)))
    return {hit.passage_id: hit.score for hit in answer.passages}


def spares(application: Application, name: str) -> list[dict[str, Any]]:
    return state.rows(application, name, "staged_embedding")


def assert_of(embedder: Embedder, application: Application, name: str) -> None:
    """All vectors of the collection are what this encoder makes of their texts."""
    scope = application.auth.access.scope(name)
    assert scope.collection.encoder.fingerprint == embedder.fingerprint
    found = vectors(application, name)
    for row in found["passage"]:
        text = f"{row['title']}. {row['text']}"
        np.testing.assert_allclose(vector(row), embedder.embed([text])[0], atol=HALF_PRECISION)
    for table, column in TEXTS.items():
        assert found[table] or (table == "expansion_unit" and "published" not in application.wing_services), table
        for row in found[table]:
            np.testing.assert_allclose(vector(row), embedder.embed([row[column]])[0], atol=HALF_PRECISION)
    for row in found["judged_query"]:
        assert row["space"] == scope.collection.space
        if row["time_constraint"]:
            expected = embedder.embed([row["time_constraint"]])[0]
            np.testing.assert_allclose(vector(row, "time_embedding"), expected, atol=1e-6)


@pytest.mark.wing("published")
def test_all_vectors_are_of_the_other_encoder_and_the_log_still_explains_them(
    both: Application, second: Embedder, taught: str
) -> None:
    before = {table: state.rows(both, taught, table) for table in UNMOVED}
    memories = state.rows(both, taught, "sentence_memory", ("updated_at",))
    assert_of(both.models.embedder, both, taught)

    job = reembed_collection(both, taught)

    assert (job.status, job.stage, job.error) == ("succeeded", "in place", None)
    assert job.result == {"model": second.model, "fingerprint": second.fingerprint}
    assert_of(second, both, taught)
    undo.assert_verified(both, taught)
    assert {table: state.rows(both, taught, table) for table in UNMOVED} == before
    moved = state.rows(both, taught, "sentence_memory", ("updated_at",))
    assert sorted(row["perplexity"] for row in moved) == sorted(row["perplexity"] for row in memories)
    assert (moved != memories) == ("published" in both.wing_services)
    event = undo.stream(both, taught, 3, seed=9)
    undo.apply(both, taught, event)
    undo.assert_verified(both, taught)


@pytest.mark.wing("published")
def test_memories_are_as_if_it_had_been_its_encoder_from_the_first_day(
    both: Application, own: Servers, settings: Settings, second: Embedder, collection: str
) -> None:
    # The sentence that stands for a passage that helped as a whole was chosen by the old vectors, and stays.
    create_twin(both, collection)
    undo.apply(both, collection, undo.stream(both, collection, 12, seed=3, whole_passages=False), batch=4)
    reembed_collection(both, collection)
    twin = f"{collection}-twin"
    with application_on(own, settings, both, second) as other:
        create_twin(other, twin)
        undo.apply(other, twin, undo.stream(other, twin, 12, seed=3, whole_passages=False), batch=4)

    def list_learned(name: str) -> list[tuple[Any, ...]]:
        texts = {row["id"]: row["text"] for row in state.rows(both, name, "sentence")}
        rows = state.rows(both, name, "sentence_memory")
        return sorted((texts[r["sentence_id"]], r["channel"], r["vector"], r["perplexity"]) for r in rows)

    assert list_learned(collection) == list_learned(twin)


def test_queries_are_answered_by_the_old_vectors_until_the_new_ones_serve(both: Application, taught: str) -> None:
    old = ask_scores(both, taught)
    answers: list[dict[str, float]] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            answers.append(ask_scores(both, taught))

    thread = threads.make_thread(ask)
    thread.start()
    try:
        assert reembed_collection(both, taught).status == "succeeded"
    finally:
        over.set()
        thread.join()
    new = ask_scores(both, taught)
    assert new != pytest.approx(old)
    kinds = ["old" if answer == pytest.approx(old) else "new" for answer in answers]
    assert [answer for answer in answers if answer != pytest.approx(old) and answer != pytest.approx(new)] == []
    assert kinds == sorted(kinds, reverse=True)  # and never the old ones again
    assert "old" in kinds


def test_a_query_that_began_with_the_old_vectors_ends_with_the_new_ones(both: Application, taught: str) -> None:
    scope = both.auth.access.scope(taught)
    plan = both.retrieval.retrieve.plan(Query(text=QUESTION, scope=scope))
    assert reembed_collection(both, taught).status == "succeeded"
    found = both.retrieval.retrieve.find(plan)
    assert {external: score for _, external, score in found.shown_passages} == pytest.approx(
        ask_scores(both, taught)
    )
    with pytest.raises(UnavailableError, match="given other vectors at this moment"):
        both.retrieval.dense.search(scope, QUESTION, 3)


def test_a_job_goes_on_where_it_was_lost(both: Application, taught: str) -> None:
    def fail(texts: Sequence[str]) -> None:
        if get_counting_encoder(both).texts > 20:
            raise RuntimeError("killed")

    before = ask_scores(both, taught)
    get_counting_encoder(both).before = fail
    batches = runner(both, reembed=_build_small_service(both))
    both.corpus.reembed.request(both.auth.access.scope(taught))
    assert batches.run_ready() == 0
    first = get_counting_encoder(both).texts
    staged = [row for row in spares(both, taught) if row["encoder"] == get_counting_encoder(both).fingerprint]
    assert 0 < len(staged) <= first
    assert ask_scores(both, taught) == before

    get_counting_encoder(both).before = lambda _: None
    assert run_again(both, batches) == 1
    again = get_counting_encoder(both).texts - first
    assert again + len(staged) == len(
        [row for row in spares(both, taught) if row["encoder"] == get_counting_encoder(both).fingerprint]
    )
    assert_of(get_counting_encoder(both), both, taught)


def _build_small_service(application: Application) -> ReembeddingService:
    """Change of encoder in batches of four texts."""
    return ReembeddingService(
        application.database,
        application.models.encoder,
        batch_size=4,
        follow=lambda writer, collection_id: [
            state.follow_encoder(writer, collection_id) for state in application.hooks.derived_states
        ],
    )


def test_changes_during_reembedding_are_reembedded(both: Application, taught: str) -> None:
    """A passage, a changed one, a deleted one, and verdicts, in the midst of it."""
    arrived: list[int] = []

    def arrive(_: Sequence[str]) -> None:
        get_counting_encoder(both).before = lambda _: None
        state.stage_passages(
            both, taught, NEW_PASSAGE, {**CURIE[0], "text": "Marie Curie was born in Warsaw. She taught in Paris."}
        )
        while job := both.jobs.runner.claim(_claimant(), ["corpus"]):
            assert both.jobs.runner.carry_out(job, lambda: False)
        both.corpus.ingest.delete_passage(both.auth.access.scope(taught), "tokyo")
        events = undo.stream(both, taught, 4, seed=5)
        arrived.extend(events)
        undo.apply(both, taught, events[:2])

    get_counting_encoder(both).before = arrive
    assert reembed_collection(both, taught).status == "succeeded"
    assert len(arrived) == 4
    waiting = state.rows(both, taught, "judged_query")
    assert {row["space"] for row in waiting} <= {0, 1}
    undo.apply(both, taught, arrived[2:])  # given before, applied after
    undo.assert_verified(both, taught)
    assert_of(get_counting_encoder(both), both, taught)
    assert {row["external_id"] for row in state.rows(both, taught, "passage")} >= {"radium"}


def _claimant() -> Any:
    from uuid import uuid4

    return uuid4()


def test_an_ingest_that_embedded_before_writes_nothing_of_the_old_space(both: Application, taught: str) -> None:
    first = get_first_encoder(both)

    def cut_over(_: Sequence[str]) -> None:
        first.before = lambda _: None
        both.corpus.reembed.request(both.auth.access.scope(taught))
        while job := both.jobs.runner.claim(_claimant(), ["vectors"]):
            assert both.jobs.runner.carry_out(job, lambda: False)

    first.before = cut_over
    state.stage_passages(both, taught, NEW_PASSAGE)
    assert both.jobs.runner.run_ready() == 1
    assert_of(get_counting_encoder(both), both, taught)
    undo.assert_verified(both, taught)


def test_a_verdict_on_an_answer_of_before_is_learned_along_the_new_vector(both: Application, taught: str) -> None:
    scope = both.auth.access.scope(taught)
    question = "What did she discover in 1898?"
    query = both.answers.question.serve(Query(text=question, scope=scope)).query_id
    assert reembed_collection(both, taught).status == "succeeded"
    receipt = state.judge(both, taught, query, state.list_sentence_ids(both, taught)[:2], wait=True)
    assert receipt.event.status == "applied"
    assert_of(get_counting_encoder(both), both, taught)
    undo.assert_verified(both, taught)


def test_back_again_embeds_only_what_came_since(both: Application, taught: str) -> None:
    old, answers = vectors(both, taught), ask_scores(both, taught)
    first = get_first_encoder(both)
    before = first.texts
    reembed_collection(both, taught)
    state.stage_passages(both, taught, NEW_PASSAGE)
    both.jobs.runner.run_ready()
    said = len({row["question"] for row in state.rows(both, taught, "judged_query")})

    assert reembed_collection(both, taught, both.models.embedder.model).status == "succeeded"

    new = {row["text"] for row in state.rows(both, taught, "sentence")} - {row["text"] for row in old["sentence"]}
    embedded = first.texts - before
    assert len(new) < embedded <= len(new) + 3 + said + len(undo.UNITS) + 8  # its passage and names, texts sent
    assert_of(both.models.embedder, both, taught)
    undo.assert_verified(both, taught)
    both.corpus.ingest.delete_passage(both.auth.access.scope(taught), "radium")
    kept = {row["id"]: row["embedding"] for row in vectors(both, taught)["sentence"]}
    assert kept == {row["id"]: row["embedding"] for row in old["sentence"]}
    assert ask_scores(both, taught) == pytest.approx(answers, abs=1e-5)

    job = both.corpus.reembed.request_drop(both.auth.access.scope(taught))
    assert both.jobs.runner.run_ready() == 1
    assert both.jobs.jobs.job(both.auth.access.scope(taught), job).status == "succeeded"
    assert spares(both, taught) == []
    undo.assert_verified(both, taught)


def test_staged_vectors_of_changed_passages_are_removed(both: Application, taught: str) -> None:
    reembed_collection(both, taught)
    ids = state.passages(both, taught)
    gone = {row["id"] for row in state.rows(both, taught, "sentence") if row["passage_id"] == ids["tokyo"]}
    both.corpus.ingest.delete_passage(both.auth.access.scope(taught), "tokyo")
    state.stage_passages(both, taught, {**CURIE[0], "text": "She was born elsewhere."})
    both.jobs.runner.run_ready()
    left = spares(both, taught)
    assert {row["passage_id"] for row in left}.isdisjoint({ids["tokyo"], ids["curie"]})
    assert {row["sentence_id"] for row in left}.isdisjoint(gone)
    assert left
    both.revocation.learning_reset.reset(both.auth.access.scope(taught))
    assert [row for row in spares(both, taught) if row["digest"] and not row["passage_id"]] == []
    both.corpus.ingest.delete_collection(both.auth.access.scope(taught))
    assert spares(both, taught) == []


def test_vector_indexes_are_not_written_into_one_by_one(both: Application, taught: str) -> None:
    index_all(both)
    assert set(both.auth.access.scope(taught).collection.indexed) == {"entity", "passage", "question"}
    assert reembed_collection(both, taught).status == "succeeded"
    assert both.auth.access.scope(taught).collection.indexed == []
    new = ask_scores(both, taught)
    index_all(both)
    assert ask_scores(both, taught) == pytest.approx(new)


def test_a_process_without_the_encoder_refuses_it_and_leaves_jobs_to_others(
    both: Application, alone: Application, taught: str
) -> None:
    with pytest.raises(InvalidRequestError, match=r"runs all-MiniLM-L6-v2 \(\w{12}\); name one .*SECONDARY"):
        alone.corpus.reembed.request(alone.auth.access.scope(taught))
    scope = both.auth.access.scope(taught)
    job = both.corpus.reembed.request(scope)
    assert run_again(alone, alone.jobs.runner) == 0
    waiting = alone.jobs.jobs.job(scope, job)
    assert (waiting.status, waiting.attempts) == ("queued", 0)
    assert "Vectors of shallow" in (waiting.error or "")
    with pytest.raises(ConflictError):
        both.corpus.reembed.request_drop(scope)
    make_due(both)
    assert both.jobs.runner.run_ready() == 1
    assert (
        reembed_collection(both, taught, get_counting_encoder(both).model).status == "succeeded"
    )  # it is of it already


def test_a_job_that_is_cancelled_leaves_the_old_vectors(both: Application, taught: str) -> None:
    scope, old = both.auth.access.scope(taught), vectors(both, taught)
    job = both.corpus.reembed.request(scope)

    def cancel(_: Sequence[str]) -> None:
        both.jobs.jobs.cancel(scope, job)

    get_counting_encoder(both).before = cancel
    both.jobs.runner.run_ready()
    assert both.jobs.jobs.job(scope, job).status == "cancelled"
    assert vectors(both, taught) == old
    assert both.auth.access.scope(taught).collection.encoder == both.models.encoder.id


@pytest.mark.parametrize("dimension", [8, 3_072])
def test_the_other_encoder_may_be_of_another_dimension(
    both: Application, own: Servers, settings: Settings, taught: str, dimension: int
) -> None:
    other, old = ResizedEncoder(both.models.embedder, dimension), vectors(both, taught)
    with application_on(own, settings, both) as services:
        services.models.embedder_also = other
        index_all(services)

        assert reembed_collection(services, taught).status == "succeeded"

        assert services.auth.access.scope(taught).collection.encoder_dimension == dimension
        assert_of(other, services, taught)
        undo.assert_verified(services, taught)
        undo.apply(services, taught, undo.stream(services, taught, 3, seed=9))
        index_all(services)
        assert ask_scores(services, taught)
        assert reembed_collection(services, taught, both.models.embedder.model).status == "succeeded"
        undo.assert_verified(services, taught)
    assert {row["text"]: row["embedding"] for row in vectors(both, taught)["sentence"]} == {
        row["text"]: row["embedding"] for row in old["sentence"]
    }
