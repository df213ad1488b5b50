"""A cross-encoder as a folder."""

import shutil
from pathlib import Path

import pytest

from engram.context.errors import ConfigurationError
from engram.providers.reranker.cross_encoder import CrossEncoder
from tests.support.encoder import tiny_cross_encoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small cross-encoder with random weights."""
    return tiny_cross_encoder(tmp_path_factory.mktemp("models") / "tiny-cross")


def test_a_cross_encoder_reads_question_and_text_together(folder: Path) -> None:
    cross = CrossEncoder(folder)
    texts = ["Marie Curie was born in Warsaw.", "Tokyo lies on Tokyo Bay."]
    scores = cross.score("Where was Marie Curie born?", texts)
    assert all(0.0 < score < 1.0 for score in scores)
    assert scores == pytest.approx(
        [cross.score("Where was Marie Curie born?", [text])[0] for text in texts], abs=1e-5
    )
    assert cross.score("Where?", texts) != pytest.approx(scores, abs=1e-7)
    assert cross.score("Where?", []) == []
    assert cross.name.startswith("tiny-cross ")


def test_folder_without_a_cross_encoder_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"has no config\.json"):
        CrossEncoder(tmp_path)
    several = shutil.copytree(folder, tmp_path / "several")
    (several / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        CrossEncoder(several)
