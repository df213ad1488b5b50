"""Open WebUI's own code against a running service, on demand.

ENGRAM_EVALUATION_OPEN_WEBUI names the Python of an environment that Open WebUI is installed in:

    python3.11 -m venv /tmp/open-webui && cd /tmp/open-webui
    bin/pip install --no-deps open-webui==0.12.4
    bin/pip install -r lib/python3.11/site-packages/requirements-slim.txt
    ENGRAM_EVALUATION_OPEN_WEBUI=/tmp/open-webui/bin/python pytest tests/clients/test_open_webui.py
"""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from engram.composition.container import Application
from tests.conftest import CURIE
from tests.support import state
from tests.support.processes import free_port

PYTHON = os.environ.get("ENGRAM_EVALUATION_OPEN_WEBUI", "")
START_SECONDS = 180
QUESTION = "Where was Marie Curie born?"
TEXTS = [*(passage["text"] for passage in CURIE), "The kettle is on the stove."]
RERANK = """
import json, sys
from open_webui.retrieval.models.external import ExternalReranker
asked = json.load(sys.stdin)
reranker = ExternalReranker(api_key="none", url=asked["url"], model=asked["model"])
print(json.dumps(reranker.predict([(asked["query"], text) for text in asked["texts"]])))
"""

pytestmark = pytest.mark.skipif(not PYTHON, reason="ENGRAM_EVALUATION_OPEN_WEBUI names no Python with Open WebUI")


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Variables of a process of Open WebUI that keeps its data in the folder and asks nobody else."""
    return os.environ | {
        "DATA_DIR": str(folder),
        "WEBUI_SECRET_KEY": "tests",
        "FROM_INIT_PY": "true",  # as its own command sets it
        "USE_SLIM_DOCKER": "true",
        "OFFLINE_MODE": "true",
        "ENABLE_OLLAMA_API": "false",
        "ENABLE_VERSION_UPDATE_CHECK": "false",
        "ENABLE_TITLE_GENERATION": "false",
        "ENABLE_TAGS_GENERATION": "false",
        "ENABLE_FOLLOW_UP_GENERATION": "false",
        "VECTOR_DB": "pgvector",
        **more,
    }


@pytest.fixture
def open_webui(service: str, tmp_path: Path) -> Iterator[httpx.Client]:
    """A client of a running Open WebUI whose models are the collections of the service, signed in."""
    port = free_port()
    more = {"OPENAI_API_BASE_URLS": f"{service}/v1", "OPENAI_API_KEYS": "none"}
    command = [PYTHON, "-m", "uvicorn", "open_webui.main:app", "--port", str(port)]
    process = subprocess.Popen(command, env=environment(tmp_path, **more), cwd=tmp_path)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            ends = time.monotonic() + START_SECONDS
            while time.monotonic() < ends:
                with suppress(httpx.TransportError):
                    if client.get("/health").status_code == 200:
                        break
                assert process.poll() is None, "Open WebUI did not start"
                time.sleep(0.5)
            person = {"name": "Ada", "email": "ada@example.org", "password": "tests-only"}
            token = client.post("/api/v1/auths/signup", json=person).raise_for_status().json()["token"]
            client.headers["authorization"] = f"Bearer {token}"
            yield client
    finally:
        process.terminate()
        process.wait(60)


def test_its_reranker_gets_a_score_for_each_text(service: str, curie: str, tmp_path: Path) -> None:
    url = f"{service}/v1/rerank"
    asked = {"url": url, "model": curie, "query": QUESTION, "texts": TEXTS}
    done = subprocess.run(
        [PYTHON, "-c", RERANK],
        input=json.dumps(asked),
        env=environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout.splitlines()[-1])
    assert len(scores) == len(TEXTS)
    assert max(range(len(TEXTS)), key=scores.__getitem__) == 0
    body = {"model": curie, "query": QUESTION, "documents": TEXTS}
    ranked = httpx.post(url, json=body).raise_for_status().json()["results"]
    assert scores == [one["relevance_score"] for one in sorted(ranked, key=lambda one: one["index"])]


def test_a_collection_is_a_model_of_its_chats(
    open_webui: httpx.Client, application: Application, curie: str
) -> None:
    models = open_webui.get("/api/models").raise_for_status().json()["data"]
    assert curie in {model["id"] for model in models}
    body = {"model": curie, "messages": [{"role": "user", "content": QUESTION}], "stream": False}
    answer = open_webui.post("/api/chat/completions", json=body).raise_for_status().json()
    assert '"Marie Curie was born in Warsaw in 1867." [1]' in answer["choices"][0]["message"]["content"]
    streamed = open_webui.post("/api/chat/completions", json=body | {"stream": True}).raise_for_status().text
    assert "Marie Curie was born in Warsaw in 1867." in streamed
    assert "[DONE]" in streamed
    assert len(state.rows(application, curie, "episode")) == 2
