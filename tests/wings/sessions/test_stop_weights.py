"""The published stop's weights as a file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context.errors import ConfigurationError
from engram.providers.reranker.cross_encoder import CrossEncoder
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.stop_weights import COSINE, StopWeights, load_stop
from engram_evaluation.prior_files import format_stop
from tests.support.encoder import tiny_cross_encoder

pytestmark = pytest.mark.torch


def write_weights(path: Path, **changed: Any) -> Path:
    plain = format_stop(StopWeights(np.array([-1.0, 0.5, 2.0]), COSINE, ("some",)))
    path.write_text(json.dumps(plain | changed), encoding="utf-8")
    return path


def test_weights_are_read_as_they_were_written(tmp_path: Path) -> None:
    found = load_stop(write_weights(tmp_path / "stop.json"))
    assert (found.classifier.tolist(), found.relevance, found.fitted) == ([-1.0, 0.5, 2.0], COSINE, ("some",))
    shipped = load_stop()
    assert shipped.relevance == COSINE
    assert shipped.fitted
    assert (shipped.classifier[1:] != 0).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"features": ["bias"]},
        {"mean": [1, 2]},
        {"mean": [1, 2, float("nan")]},
    ],
)
def test_file_without_stop_weights_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="holds no weights of a stop"):
        load_stop(write_weights(tmp_path / "stop.json", **wrong))
    with pytest.raises(ConfigurationError, match="holds no weights of a stop"):
        load_stop(tmp_path / "none.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small cross-encoder with random weights."""
    return tiny_cross_encoder(tmp_path_factory.mktemp("models") / "tiny-cross")


def test_weights_and_what_tells_relevance_go_together(
    folder: Path, tmp_path: Path, application: Application, addresses: Servers, settings: Settings
) -> None:
    def classifier(**changed: Any) -> Any:
        other = Application(settings.model_copy(update=changed), addresses)
        other.models.embedder, other.models.language = application.models.embedder, application.models.language
        try:
            return sessions_of(other).classifier
        finally:
            other.close()

    with pytest.raises(ConfigurationError, match="engram fit-stop"):
        classifier(sessions_cross_encoder=folder)
    fitted = write_weights(tmp_path / "stop.json", relevance=CrossEncoder(folder).name)
    with pytest.raises(ConfigurationError, match="engram fit-stop"):
        classifier(sessions_stop_weights=fitted)
    assert classifier(sessions_cross_encoder=folder, sessions_stop_weights=fitted)
