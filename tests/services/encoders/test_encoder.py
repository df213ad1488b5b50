"""Several encoders over one database: each serves its own collections, and refuses the other's."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
import structlog

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context.errors import ConfigurationError, EmbeddingSpaceMismatchError
from engram.core.learning.logged_verdict import Expansion
from engram.runtime.api_process import create_app
from engram.services.auth.scope import Scope
from engram.services.question.query import Query
from engram.services.verdict.verdict import Verdict
from engram.storage.maintenance import index_recall
from engram.storage.question.nearest_neighbours import nearness
from engram.wings.experiments.parts import ExperimentServices
from engram.wings.published.parts import published_of
from tests.conftest import CURIE
from tests.support import state, undo
from tests.support.databases import application_on, index_all
from tests.support.encoder import HALF_PRECISION, ResizedEncoder, RotatedEncoder
from tests.support.jobs import make_due, run_again
from tests.support.strict_client import TestClient
from tests.support.twins import create_twin

QUESTION = "Which river is the longest of its country?"
RIVER = Expansion("hyde", "The longest river of the country flows past the capital into the sea.")
REASON = r"holds vectors of all-MiniLM-L6-v2 \(\w{12}\), but this process runs turned \(7{12}\)\. Run the first"


@pytest.fixture(scope="module")
def application(own: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    """The first of two."""
    with application_on(own, settings, application) as services:
        yield services


@pytest.fixture(scope="module")
def other(own: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    """The second, with another encoder."""
    with application_on(own, settings, application, RotatedEncoder(application.models.embedder)) as services:
        yield services


@pytest.fixture
def held(application: Application, collection: str) -> str:
    """A collection of the first."""
    return create_twin(application, collection)


def ask(application: Application, name: str, **more: Any) -> UUID:
    return application.answers.question.serve(
        Query(text=QUESTION, scope=application.auth.access.scope(name), **more)
    ).query_id


def verdict(application: Application, name: str, query_id: UUID, *expansions: Expansion) -> Verdict:
    scope = application.auth.access.scope(name)
    return Verdict(
        query_id=query_id, scope=scope, partial=True, supporting_passages=("vistula",), expansions=expansions
    )


def add_pending_verdict(application: Application, name: str, *expansions: Expansion) -> int:
    """An event that waits for a worker."""
    said = verdict(application, name, ask(application, name), *expansions)
    return application.learning.verdicts.accept(said, uuid4().hex).event.id


def rows(application: Application) -> Mapping[str, int]:
    """How many each table has."""
    with application.database.read() as reader:
        tables = reader.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        return {table: reader.scalar(f'SELECT count(*) FROM "{table}"') for (table,) in tables}


def vectors(application: Application, name: str) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    return {
        row["external_id"]: np.array(row["embedding"].strip("[]").split(","), dtype=np.float64)
        for row in state.rows(application, name, "passage")
    }


def test_each_encoder_serves_its_own_collections(application: Application, other: Application, held: str) -> None:
    """All cosines are the same in both spaces, so both answer alike, and neither would with the other's vectors."""
    beside = create_twin(other, f"{held}-beside")
    answers = []

    for services, name in ((application, held), (other, beside)):
        scope = services.auth.access.scope(name)
        assert scope.collection.encoder == services.models.encoder.id
        found = vectors(services, name)
        texts = [f"{passage['title']}. {passage['text']}" for passage in CURIE]
        for passage, vector in zip(CURIE, services.models.embedder.embed(texts), strict=True):
            np.testing.assert_allclose(found[passage["id"]], vector, atol=HALF_PRECISION)
        answer = services.answers.question.serve(Query(text=QUESTION, scope=scope))
        answers.append({passage.passage_id: passage.score for passage in answer.passages})
        event = add_pending_verdict(services, name, RIVER)
        assert services.learning.learner.apply(scope.collection.id, [event]) == 1
        assert services.jobs.runner.run_ready() == 0
        undo.assert_verified(services, name)
    assert answers[0] == pytest.approx(answers[1], abs=1e-6)
    assert list(answers[0]) == list(answers[1])


REFUSED: dict[str, Callable[[Application, Scope], object]] = {
    "a query": lambda app, scope: app.answers.question.serve(Query(text=QUESTION, scope=scope)),
    "a query by words": lambda app, scope: app.answers.question.serve(
        Query(text=QUESTION, scope=scope, strategy="lexical")
    ),
    "a comparison": lambda app, scope: app.wing(ExperimentServices).compare.compare(
        *[Query(text=QUESTION, scope=scope)] * 2
    ),
    "an expansion": lambda app, scope: published_of(app).expand.expand(scope, QUESTION, ["prf"]),
    "dense retrieval": lambda app, scope: app.retrieval.dense.search(scope, QUESTION, 3),
    "new keys": lambda app, scope: app.corpus.rekey.request(scope, "title"),
    "passages": lambda app, scope: state.stage_passages(app, scope.collection.name, *CURIE),
    "a verdict with expansions": lambda app, scope: app.learning.verdicts.accept(
        Verdict(query_id=uuid4(), scope=scope, expansions=[RIVER]), "once"
    ),
    "a submitted verdict with expansions": lambda app, scope: app.learning.log.store_soon(
        Verdict(query_id=uuid4(), scope=scope, expansions=[RIVER]), "once"
    ),
}


@pytest.mark.parametrize(
    "use",
    [
        *sorted(REFUSED.keys() - {"a comparison", "an expansion"}),
        pytest.param("a comparison", marks=pytest.mark.wing("experiments")),
        pytest.param("an expansion", marks=pytest.mark.wing("published")),
    ],
)
def test_embedding_into_another_space_is_refused_without_writes(other: Application, held: str, use: str) -> None:
    before = rows(other)
    with pytest.raises(EmbeddingSpaceMismatchError, match=rf"^Collection '{held}' {REASON}"):
        REFUSED[use](other, other.auth.access.scope(held))
    assert rows(other) == before


@pytest.mark.wing("experiments", "published")
def test_reads_work_without_the_collection_encoder(application: Application, other: Application, held: str) -> None:
    events = [add_pending_verdict(application, held, RIVER), add_pending_verdict(application, held)]
    application.learning.learner.apply(application.auth.access.scope(held).collection.id, events)
    scope = other.auth.access.scope(held)

    assert other.corpus.ingest.passage(scope, "vistula")[0].title == "Vistula"
    assert held in {found.name for found in other.corpus.ingest.collections(None, 1_000)}
    assert other.answers.episodes.read(scope, ask(application, held)).judged == 0
    assert published_of(other).evolve.evolve(scope) is not None
    assert published_of(other).key_view.view(scope, "vistula", 10)
    assert published_of(other).evolve.roll_back(scope, 0).generation == 0
    assert other.wing(ExperimentServices).lift.lift(scope, since=None, before=None, baseline=None)
    assert other.corpus.collection_settings.configure(scope, {"serving": "shadow"}).serving == "shadow"
    assert other.learning.verdicts.read(scope, events[1]).event.status == "applied"
    undo.assert_verified(other, held)
    assert other.learning.revocation.revoke(scope, events[1]).status == "revoked"
    other.corpus.ingest.delete_passage(scope, "tokyo")
    undo.assert_verified(other, held)
    other.revocation.learning_reset.reset(scope)
    other.corpus.ingest.delete_collection(scope)


def test_a_verdict_that_brings_no_text_is_taken_and_applied_by_either(
    application: Application, other: Application, held: str
) -> None:
    said = verdict(other, held, ask(application, held))
    assert other.learning.verdicts.accept(said, uuid4().hex, wait=True).event.status == "applied"
    undo.assert_verified(application, held)


def open_job(application: Application, name: str) -> dict[str, Any]:
    (job,) = [row for row in state.rows(application, name, "job") if row["status"] in {"queued", "running"}]
    return job


@pytest.mark.parametrize("kind", ["ingest", "rekey"])
def test_a_job_waits_for_a_worker_with_the_encoder(
    application: Application, other: Application, held: str, kind: str
) -> None:
    scope = application.auth.access.scope(held)
    if kind == "ingest":
        job_id = state.stage_passages(application, held, {**CURIE[0], "text": "Marie Curie lived in Paris."})
    else:
        job_id = application.corpus.rekey.request(scope, "title")
    before = vectors(application, held)

    for _ in range(7):  # more than the tries that fail a job
        assert run_again(other, other.jobs.runner) == 0
    waiting = open_job(application, held)
    assert (waiting["status"], waiting["attempts"], waiting["created"]) == ("queued", 0, 0)
    assert waiting["error"].startswith(f"Collection '{held}' holds vectors of all-MiniLM-L6-v2")
    assert datetime.fromisoformat(waiting["due_at"]) > datetime.now(UTC)
    np.testing.assert_equal(vectors(application, held), before)

    make_due(application)
    assert application.jobs.runner.run_ready() == 1
    job = application.jobs.jobs.job(scope, job_id)
    assert (job.status, job.error) == ("succeeded", None)
    assert vectors(application, held)["curie"].tolist() != before["curie"].tolist()


@pytest.mark.wing("published")
def test_expansions_wait_for_a_worker_with_the_encoder(
    application: Application, other: Application, held: str
) -> None:
    with_text, without = add_pending_verdict(application, held, RIVER), add_pending_verdict(application, held)
    target = application.auth.access.scope(held).collection.id

    assert other.learning.learner.apply(target, [with_text, without]) == 1
    assert state.event_statuses(application, held) == {with_text: "pending", without: "applied"}
    waiting = application.learning.verdicts.read(application.auth.access.scope(held), with_text).event
    assert (waiting.attempts, waiting.status) == (0, "pending")
    assert waiting.error is not None
    assert waiting.error.startswith(f"Collection '{held}' holds vectors of all-MiniLM-L6-v2")

    last = add_pending_verdict(application, held)
    assert (
        other.learning.learner.apply_overdue(0.0, 1) == 1
    )  # that which it cannot embed is not in the way of what it can
    assert state.event_statuses(application, held)[last] == "applied"
    assert other.learning.learner.apply_overdue(0.0, 10) == 0

    assert application.learning.learner.apply_overdue(0.0, 10) == 1
    applied = application.learning.verdicts.read(application.auth.access.scope(held), with_text).event
    assert (applied.status, applied.error) == ("applied", None)
    undo.assert_verified(application, held)


def test_the_start_names_what_it_cannot_serve(application: Application, other: Application, held: str) -> None:
    beside = create_twin(other, f"{held}-beside")

    def list_named_collections(services: Application) -> str:
        with structlog.testing.capture_logs() as logs:
            services.startup.warm_up()
        return " ".join(" ".join(line["collections"]) for line in logs if "other encoders" in line["event"])

    assert f"{held} (all-MiniLM-L6-v2)" in list_named_collections(other)
    assert beside not in list_named_collections(other)
    assert f"{beside} (turned)" in list_named_collections(application)
    assert f"{held} (" not in list_named_collections(application)
    for services, name in ((application, held), (other, beside)):
        services.corpus.ingest.delete_collection(services.auth.access.scope(name))


@pytest.mark.parametrize("dimension", [8, 3_072, 4_096])
def test_collections_of_other_dimensions_live_beside_each_other(
    application: Application, own: Servers, settings: Settings, collection: str, dimension: int
) -> None:
    """From 2,001 numbers on an index has half precision; from 4,001 on it has the first 4,000 numbers."""
    name = f"{collection}-{dimension}"
    create_twin(application, collection)
    with application_on(
        own, settings, application, ResizedEncoder(application.models.embedder, dimension)
    ) as services:
        services.startup.check_encoders()
        create_twin(services, name)
        scope = services.auth.access.scope(name)
        assert scope.collection.encoder == services.models.encoder.id
        assert (
            services.learning.learner.apply(scope.collection.id, [add_pending_verdict(services, name, RIVER)]) == 1
        )
        exact = services.answers.question.serve(Query(text=QUESTION, scope=scope, memory="off"))
        undo.assert_verified(services, name)

        index_all(services)

        scope = services.auth.access.scope(name)
        assert sorted(scope.collection.indexed) == ["entity", "passage", "question"]
        (vector,) = services.models.embedder.embed([QUESTION])
        near = nearness(scope.collection, "passage", "embedding", "%(q)s")
        with services.database.read() as reader:
            found = [
                index_recall.measure_nearest(reader, scope.collection, "passage", vector, exact=e)
                for e in (True, False)
            ]
            statement = f"EXPLAIN SELECT id FROM passage WHERE {near.rows} ORDER BY {near.order} LIMIT 3"
            plan = " ".join(row[0] for row in reader.rows(statement, {"q": vector}))
        assert found[1] == pytest.approx(found[0], abs=1e-6)
        assert f"passage_hnsw_{scope.collection.id}" in plan
        indexed = services.answers.question.serve(Query(text=QUESTION, scope=scope, memory="off"))
        assert {hit.passage_id: hit.score for hit in indexed.passages} == pytest.approx(
            {hit.passage_id: hit.score for hit in exact.passages}, abs=1e-5
        )
        assert services.learning.learner.apply(scope.collection.id, [add_pending_verdict(services, name)]) == 1
        assert services.answers.question.serve(Query(text=QUESTION, scope=scope)).passages
        undo.assert_verified(services, name)
    with application_on(own, settings, application) as services:
        assert services.answers.question.serve(
            Query(text=QUESTION, scope=services.auth.access.scope(collection))
        ).passages
        undo.assert_verified(services, collection)
        services.corpus.ingest.delete_collection(services.auth.access.scope(name))


def test_vectors_too_long_to_be_stored_end_the_start_with_a_line(
    application: Application, own: Servers, settings: Settings
) -> None:
    with (
        application_on(own, settings, application, ResizedEncoder(application.models.embedder, 4_097)) as services,
        pytest.raises(
            ConfigurationError, match=r"^resized-4097 gives 4097-dimensional vectors, and 4096 is the most"
        ),
    ):
        services.startup.warm_up()


def test_encoder_mismatch_has_its_own_problem_type(other: Application, held: str) -> None:
    http = TestClient(create_app(other), raise_server_exceptions=False)
    for response in (
        http.post("/query", json={"query": QUESTION, "collection": held}),
        http.post("/passages", params={"collection": held}, json={"passages": [{"id": "a", "text": "A."}]}),
        http.post(
            "/passages",
            params={"collection": held},
            content=b'{"id": "a", "text": "A."}\n',
            headers={"content-type": "application/x-ndjson"},
        ),
    ):
        problem = response.json()
        assert (response.status_code, problem["type"]) == (409, "urn:engram:problem:embedding-space-mismatch")
        assert problem["title"] == "The collection is of another encoder"
        assert "all-MiniLM-L6-v2" in problem["detail"]
        assert "turned (777777777777)" in problem["detail"]
    shown = http.get(f"/collections/{held}").json()
    assert shown["encoder"]["model"] == "all-MiniLM-L6-v2"
    assert len(shown["encoder"]["fingerprint"]) == 64
    assert http.delete(f"/collections/{held}").status_code == 204


def test_a_collection_made_anew_under_the_name_is_not_taken_for_the_one_before(
    application: Application, other: Application, own: Servers, settings: Settings, held: str
) -> None:
    """A process remembers a scope, and with it the encoder of a collection that is gone."""
    with application_on(own, settings, application, other.models.embedder) as remembering:
        http = TestClient(create_app(remembering), raise_server_exceptions=False)
        assert http.get(f"/collections/{held}").status_code == 200
        other.corpus.ingest.delete_collection(other.auth.access.scope(held))
        create_twin(other, held)
        body = {
            "query_id": str(ask(other, held)),
            "collection": held,
            "supporting_passages": ["vistula"],
            "expansions": [{"method": RIVER.method, "text": RIVER.text}],
            "wait": True,
        }
        told = http.post("/feedback", json=body, headers={"Idempotency-Key": uuid4().hex})
        assert (told.status_code, told.json().get("status")) == (200, "applied")
