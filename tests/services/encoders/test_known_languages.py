"""Whether an encoder knows a language, and what an ingest says if it does not."""

from pathlib import Path

import numpy as np
import pytest

from engram.composition.container import Application
from engram.core.text.known_languages import LEAST_NEARNESS, PARALLEL, REFERENCE, measure_nearness
from engram.providers.embedder import load_embedder
from tests.conftest import Ingest


def test_nearness_is_the_share_of_the_way_from_others_to_alike() -> None:
    turned = np.eye(8, dtype=np.float32)

    def embed(texts: object) -> np.ndarray:
        return turned if texts == PARALLEL[REFERENCE] else np.roll(turned, 1, axis=0) * 0.6 + turned * 0.8

    # Translations have a cosine of 0.8, others of 0.6 / 7 on average.
    assert measure_nearness(embed, "de") == pytest.approx((0.8 - 0.6 / 7) / (1 - 0.6 / 7))
    assert measure_nearness(embed, "la") is None


@pytest.mark.parametrize("language", sorted(PARALLEL))
def test_sentences_have_translations_in_the_same_places(language: str) -> None:
    assert len(set(PARALLEL[language])) == len(PARALLEL[REFERENCE]) == 8


def test_packaged_encoders_know_what_they_were_trained_on(tmp_path: Path) -> None:
    english = load_embedder("all-MiniLM-L6-v2", "onnx", tmp_path, threads=2, batch_size=64)
    multilingual = load_embedder("multilingual-e5-small", "onnx", tmp_path, threads=2, batch_size=64)
    for embedder, known in ((english, {REFERENCE}), (multilingual, set(PARALLEL))):
        nearness = {language: measure_nearness(embedder.embed, language) or 0.0 for language in PARALLEL}
        assert {language for language, value in nearness.items() if value >= LEAST_NEARNESS} == known, nearness


def test_an_ingest_says_once_which_languages_are_unknown(
    application: Application, collection: str, ingest: Ingest
) -> None:
    rows = (("ru", "Поезд прибыл в город ночью."), ("ru", "Вода кипит в чайнике."), ("en", "The train was late."))
    assert ingest(*({"id": text, "text": text, "language": language} for language, text in rows))["created"] == 3
    views = application.jobs.jobs.page(application.auth.access.scope(collection), None, 10)
    (result,) = (view.job.result for view in views if view.job.kind == "ingest")
    warning = result["warnings"]["unknown-language"]
    assert warning["count"] == 2
    assert "does not know ru" in warning["detail"]
