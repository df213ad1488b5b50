"""One encoder in two precisions: a collection keeps its own, whichever the process is configured for."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engram.composition.container import Application, Servers
from engram.composition.models import Models
from engram.config.settings import Settings
from engram.context.errors import InvalidRequestError
from engram.providers.embedder.model_folder import DEFAULT_MODEL, DEFAULT_MODEL_SHA256
from engram.services.question.query import Query
from tests.support import state
from tests.support.encoder import HALF_PRECISION
from tests.support.twins import create_twin

QUESTION = "Where was Marie Curie born?"


def application_with(own: Servers, settings: Settings, like: Application, precision: str) -> Application:
    """An application that loads the encoder itself."""
    services = Application(settings.model_copy(update={"embedding_precision": precision}), own, consumer="apart")
    services.models.language = like.models.language
    return services


@pytest.fixture
def single(own: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    services = application_with(own, settings, application, "float32")
    yield services
    services.close()


@pytest.fixture
def eight(own: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    services = application_with(own, settings, application, "dynamic-int8")
    yield services
    services.close()


def passage_vectors(application: Application, name: str) -> dict[str, np.ndarray]:
    return {
        f"{row['title']}. {row['text']}": np.array(row["embedding"].strip("[]").split(","), dtype=np.float32)
        for row in state.rows(application, name, "passage")
    }


def assert_made_by(application: Application, name: str) -> None:
    """The passages' vectors are those of the application's configured precision."""
    for text, vector in passage_vectors(application, name).items():
        np.testing.assert_allclose(vector, application.models.embedder.embed([text])[0], atol=HALF_PRECISION)


def compute_first_score(application: Application, name: str) -> float:
    query = Query(text=QUESTION, scope=application.auth.access.scope(name), strategy="dense")
    return application.answers.question.serve(query).passages[0].score


def test_each_precision_serves_collections_of_both(
    single: Application, eight: Application, collection: str
) -> None:
    of_single, of_eight = create_twin(single, f"{collection}-a"), create_twin(eight, f"{collection}-b")
    fingerprints = [single.auth.access.scope(name).collection.encoder_fingerprint for name in (of_single, of_eight)]
    assert fingerprints == [DEFAULT_MODEL_SHA256, eight.models.embedder.fingerprint]
    assert_made_by(single, of_single)
    assert_made_by(eight, of_eight)
    # Both processes answer from both collections alike.
    for name in (of_single, of_eight):
        assert compute_first_score(single, name) == pytest.approx(compute_first_score(eight, name), abs=1e-5)
    assert compute_first_score(single, of_single) != pytest.approx(compute_first_score(single, of_eight), abs=1e-5)
    assert [probe.encoder for probe in eight.models.encoder.probe()] == [eight.models.encoder.id]


def test_reembed_moves_to_the_configured_precision(
    single: Application, eight: Application, collection: str
) -> None:
    create_twin(single, collection)
    with pytest.raises(InvalidRequestError, match="name one of them"):
        single.corpus.reembed.request(single.auth.access.scope(collection))  # it has that precision
    for application in (eight, single):
        job = application.corpus.reembed.request(application.auth.access.scope(collection), DEFAULT_MODEL)
        application.jobs.runner.run_ready()
        scope = application.auth.access.scope(collection)
        assert application.jobs.jobs.job(scope, job).status == "succeeded"
        assert scope.collection.encoder_fingerprint == application.models.embedder.fingerprint
        assert_made_by(application, collection)


@pytest.mark.parametrize(("precision", "single_precision"), [("auto", True), ("dynamic-int8", False)])
def test_an_encoder_of_the_file_comes_in_one_precision(
    precision: str, single_precision: bool, settings: Settings, application: Application, tmp_path: Path
) -> None:
    file = tmp_path / "encoders.toml"
    file.write_text(f"[copy]\nfolder = '{DEFAULT_MODEL}'\n")
    models = Models(settings.model_copy(update={"embedding_precision": precision, "embedding_models": file}))
    models.embedder = application.models.embedder
    (copy,) = models.named_embedders
    assert copy.model == "copy"
    assert (copy.fingerprint == DEFAULT_MODEL_SHA256) is single_precision
    assert models.encoder.fingerprints.count(copy.fingerprint) == 1
