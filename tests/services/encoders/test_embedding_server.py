"""Collections whose encoder is behind a server, beside collections of an encoder of this machine."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import SecretStr

from engram.api.corpus.schemas import PassageIn
from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context import tenancy
from engram.context.errors import EmbeddingSpaceMismatchError, EmbeddingUnavailableError, InvalidRequestError
from engram.providers.embedder import Embedder, endpoint_encoder
from engram.providers.embedder.endpoint_encoder import EndpointEmbedder
from engram.runtime.api_process import create_app
from engram.services.question.query import Query
from tests.conftest import CURIE
from tests.support import evolving, state, undo
from tests.support.encoder import HALF_PRECISION, ResizedEncoder, RotatedEncoder
from tests.support.jobs import make_due
from tests.support.model_server import Failure, ModelServer
from tests.support.strict_client import TestClient
from tests.support.twins import create_twin

QUESTION = "Which river is the longest of its country?"
Start = Callable[..., AbstractContextManager[Application]]


@pytest.fixture(scope="module")
def served(application: Application) -> Embedder:
    """The model behind the server."""
    return ResizedEncoder(application.models.embedder, 512)


@pytest.fixture
def server(served: Embedder) -> Iterator[ModelServer]:
    with ModelServer(served.embed, api_key="secret") as running:
        yield running


@pytest.fixture
def start(own: Servers, settings: Settings, application: Application, server: ModelServer) -> Start:
    """Processes whose default encoder is behind the server, with that of this machine beside it."""

    @contextmanager
    def process(**changed: Any) -> Iterator[Application]:
        stated: dict[str, Any] = {
            "embedding_url": server.base_url,
            "embedding_model": "served",
            "embedding_api_key": SecretStr("secret"),
        }
        services = Application(settings.model_copy(update=stated | changed), own, consumer="apart")
        services.models.language, services.models.embedder_also = (
            application.models.language,
            application.models.embedder,
        )
        try:
            yield services
        finally:
            services.close()

    return process


def endpoint(services: Application) -> EndpointEmbedder:
    assert isinstance(services.models.embedder, EndpointEmbedder)
    return services.models.embedder


def ask(services: Application, name: str) -> list[str]:
    scope = services.auth.access.scope(name)
    return [hit.passage_id for hit in services.answers.question.serve(Query(text=QUESTION, scope=scope)).passages]


def test_a_collection_of_the_server_is_ingested_asked_and_taught(
    start: Start, served: Embedder, collection: str
) -> None:
    with start() as services:
        services.startup.check_encoders()
        create_twin(services, collection)
        held = services.auth.access.scope(collection).collection
        assert (held.encoder_model, held.encoder_dimension) == ("served", 512)
        assert held.encoder_fingerprint == services.models.embedder.fingerprint
        for row in state.rows(services, collection, "sentence"):
            vector = np.array(row["embedding"].strip("[]").split(","), dtype=np.float32)
            np.testing.assert_allclose(vector, served.embed([row["text"]])[0], atol=HALF_PRECISION)
        assert ask(services, collection)
        undo.apply(services, collection, undo.stream(services, collection, 6, seed=3))
        undo.assert_verified(services, collection)


def test_reembed_works_to_a_server_and_from_it(start: Start, application: Application, collection: str) -> None:
    with start() as services:
        services.models.embedder, services.models.embedder_also = (
            application.models.embedder,
            services.models.embedder,
        )
        create_twin(services, collection)
        undo.apply(services, collection, undo.stream(services, collection, 6, seed=3))
        before = ask(services, collection)
        for model, dimension in (("served", 512), ("all-MiniLM-L6-v2", 384)):
            scope = services.auth.access.scope(collection)
            job = services.corpus.reembed.request(scope, model)
            services.jobs.runner.run_ready()
            assert services.jobs.jobs.job(scope, job).status == "succeeded"
            held = services.auth.access.scope(collection).collection
            assert (held.encoder_model, held.encoder_dimension) == (model, dimension)
            assert ask(services, collection)
            undo.assert_verified(services, collection)
        assert ask(services, collection) == before


def test_questions_are_sent_with_their_prefix_and_passages_with_theirs(
    start: Start, server: ModelServer, collection: str
) -> None:
    with start(embedding_model="intfloat/e5-small-v2") as services:
        create_twin(services, collection)
        sent = [text for request in server.requests for text in request.json["input"]]
        assert all(text.startswith(("query: ", "passage: ")) for text in sent)
        assert any(text.startswith("passage: Marie Curie.") for text in sent)
        before = len(server.requests)
        ask(services, collection)
        asked = [text for request in server.requests[before:] for text in request.json["input"]]
        assert f"query: {QUESTION}" in asked


def test_a_request_of_a_tenant_may_be_the_first_to_reach_the_server(start: Start, collection: str) -> None:
    with start(row_security=True) as services, tenancy.restrict_to("local"):
        assert services.models.encoder.choose("served").dimension == 512
        ingest(services, collection)
        assert services.auth.access.scope(collection).collection.encoder == services.models.encoder.id


def test_the_same_model_at_another_address_is_the_same_encoder(
    start: Start, served: Embedder, collection: str
) -> None:
    with start() as services:
        create_twin(services, collection)
    with (
        ModelServer(lambda texts: nudge(served.embed(texts))) as other,
        start(embedding_url=other.base_url, embedding_model="its-other-name") as services,
    ):
        assert ask(services, collection), "vectors that differ in the last digits are comparable"
        assert (
            services.models.encoder.id.fingerprint
            == services.auth.access.scope(collection).collection.encoder_fingerprint
        )


def nudge(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return vectors + np.float32(1e-4) * np.sign(np.sin(np.arange(vectors.shape[1], dtype=np.float32)))


def test_a_server_with_another_model_is_refused_at_the_next_start(
    start: Start, server: ModelServer, served: Embedder, collection: str
) -> None:
    with start() as services:
        create_twin(services, collection)
    server.vectors = RotatedEncoder(served).embed
    with start() as services:
        reason = rf"^Collection '{collection}' holds vectors of served .* runs served .*its model was changed"
        with pytest.raises(EmbeddingSpaceMismatchError, match=reason):
            ask(services, collection)
        before = state.rows(services, collection, "sentence")
        scope = services.auth.access.scope(collection)
        assert services.corpus.reembed.request(scope, "served")
        services.jobs.runner.run_ready()
        assert ask(services, collection), "re-embedded by the new model"
        assert state.rows(services, collection, "sentence") != before


def test_a_server_that_is_away_holds_up_its_own_collections_only(
    start: Start, server: ModelServer, served: Embedder, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_encoder, "RETRY_SECONDS", 0.0)
    with start() as services:
        create_twin(services, collection)
    local = f"{collection}-local"
    with start() as services:
        server.queue(*[Failure(status=401, body=b"{}")] * 4)
        services.startup.warm_up()
        job = ingest(services, local, encoder="all-MiniLM-L6-v2")
        services.jobs.runner.run_ready()
        assert services.jobs.jobs.job(services.auth.access.scope(local), job).status == "succeeded"
        assert ask(services, local)
        server.vectors, vectors = None, server.vectors
        with pytest.raises(EmbeddingUnavailableError, match="is out of reach"):
            ask(services, collection)
        with pytest.raises(EmbeddingUnavailableError):
            ingest(services, f"{collection}-new")
        server.vectors = vectors
        assert ask(services, collection)

        server.vectors = None
        job = ingest(services, collection, {"id": "new", "text": "Radium glows."})
        assert services.jobs.runner.run_ready() == 0
        scope = services.auth.access.scope(collection)
        waiting = services.jobs.jobs.job(scope, job)
        assert (waiting.status, waiting.attempts) == ("queued", 0)
        server.vectors = vectors
        make_due(services)
        assert services.jobs.runner.run_ready() == 1
        assert services.jobs.jobs.job(scope, job).status == "succeeded"


def ingest(services: Application, name: str, *passages: dict[str, Any], encoder: str | None = None) -> Any:
    reception = services.corpus.ingest.receive(replace(services.auth.access.prepare_opening(name), encoder=encoder))
    bodies = [PassageIn.model_validate(one).body() for one in passages or CURIE]
    reception.add(list(enumerate(bodies, 1)), [])
    return reception.finish()


def test_a_collection_chooses_its_encoder_when_it_is_made(
    start: Start, application: Application, server: ModelServer, collection: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("SERVED_KEY", "secret")
    file = tmp_path / "encoders.toml"
    file.write_text(
        f'[short]\nurl = "{server.base_url}"\nmodel = "served"\napi_key_env = "SERVED_KEY"\ndimension = 64\n'
    )
    with start(embedding_models=file) as services:
        http = TestClient(create_app(services), raise_server_exceptions=False)
        body = {"passages": [{"id": one["id"], "title": one["title"], "text": one["text"]} for one in CURIE]}
        for encoder, dimension in (("short", 64), ("served", 512), ("all-MiniLM-L6-v2", 384)):
            where = {"collection": f"{collection}-{dimension}", "encoder": encoder}
            assert http.post("/passages", params=where, json=body).status_code == 202
            services.jobs.runner.run_ready()
            shown = http.get(f"/collections/{collection}-{dimension}").json()["encoder"]
            assert (shown["model"], shown["dimension"]) == (encoder, dimension)
            found = http.post("/query", json={"query": QUESTION, "collection": f"{collection}-{dimension}"})
            assert found.status_code == 200
            assert found.json()["passages"]
        refused = http.post("/passages", params=where | {"encoder": "short"}, json=body)
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:engram:problem:embedding-space-mismatch")
        assert "holds vectors of 'all-MiniLM-L6-v2', not of 'short'" in refused.json()["detail"]
        before = len(services.corpus.ingest.collections(None, 1_000))
        unknown = http.post("/passages", params={"collection": f"{collection}-x", "encoder": "nobody"}, json=body)
        assert unknown.status_code == 422
        assert "this process runs served and all-MiniLM-L6-v2 and short" in unknown.json()["detail"]
        assert len(services.corpus.ingest.collections(None, 1_000)) == before
        with pytest.raises(InvalidRequestError, match="nobody"):
            services.models.encoder.choose("nobody")


def test_no_server_is_asked_while_a_transaction_is_open(
    start: Start, application: Application, server: ModelServer, served: Embedder, collection: str
) -> None:
    open_transactions: list[str] = []

    def embed_and_record(texts: Sequence[str]) -> NDArray[np.float32]:
        with application.database.read() as reader:
            rows = reader.rows(
                """
                SELECT query FROM pg_stat_activity
                WHERE state LIKE 'idle in transaction%%' AND datname = %(name)s AND pid <> pg_backend_pid()
                """,
                {"name": watched_database},
            )
        open_transactions.extend(row.query for row in rows)
        return served.embed(texts)

    server.vectors = embed_and_record
    with start() as services:
        with services.database.read() as reader:
            watched_database = reader.scalar("SELECT current_database()")
        create_twin(services, collection)
        ask(services, collection)
        undo.apply(services, collection, undo.stream(services, collection, 4, seed=3))
        evolving.evolve(services, services.auth.access.scope(collection))
        job = services.corpus.reembed.request(services.auth.access.scope(collection), "all-MiniLM-L6-v2")
        services.jobs.runner.run_ready()
        back = services.corpus.reembed.request(services.auth.access.scope(collection), "served")
        services.jobs.runner.run_ready()
        scope = services.auth.access.scope(collection)
        assert {services.jobs.jobs.job(scope, one).status for one in (job, back)} == {"succeeded"}
    assert server.requests
    assert open_transactions == []
