"""The tour's commands and the tutorial's program, run against a live service, show what they say they show."""

import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from engram import sample
from engram.context.errors import NotFoundError
from engram.runtime.api_process import create_app
from engram.runtime.container import Application
from engram.sample.tour import question, tour
from tests.support import state
from tests.support.live_server import LiveServer

GOLD = {passage for passage, _ in question().supporting}
SHOWN = 5
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def live(application: Application) -> Iterator[LiveServer]:
    """A service that holds the sample corpus and has learned nothing of it."""
    with suppress(NotFoundError):
        application.ingest.delete_collection(application.access.scope(sample.COLLECTION))
    with LiveServer(create_app(application)) as server:
        headers = {"content-type": "application/x-ndjson"}
        url = f"{server.url}/passages?collection={sample.COLLECTION}"
        assert httpx.post(url, content=sample.corpus(), headers=headers, timeout=60).status_code == 202
        application.runner.run_ready()
        yield server
    application.ingest.delete_collection(application.access.scope(sample.COLLECTION))


def test_the_tour(live: LiveServer) -> None:
    assert shutil.which("curl"), "the tour's commands need curl"
    text = tour(live.url)
    ask, judge, ask_again = re.findall(r"^(?:ID=\$\(curl|curl) .*$", text, re.MULTILINE)
    script = f"{ask}\n{judge}\necho\n{ask_again}\n"
    for _ in range(2):  # whoever takes the tour again sees the same, though its first verdict is remembered
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True)
        assert '"status":"applied"' in done.stdout
        first, second = re.findall(r'^"query_id":.*?(?=^"query_id":|\Z)', done.stderr, re.MULTILINE | re.DOTALL)
        assert len(passages(first)) == len(passages(second)) == SHOWN
        assert GOLD - set(passages(first)), "the first answer should miss some of the evidence"
        assert set(passages(second)) >= GOLD, "after the verdict all evidence should be there"
        assert (hops(first), hops(second)) == (3, 1)
    for passage in GOLD:
        assert passage in text.partition("2. Judge")[0]


@pytest.mark.usefixtures("working")
def test_the_tutorial_for_frontends(live: LiveServer) -> None:
    page = (ROOT / "docs" / "tutorial-frontend.md").read_text(encoding="utf-8")
    program = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)).replace(
        "http://127.0.0.1:8000", live.url
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "applied after one thumb" in done.stdout
    assert "learned: 2 of 5\nwithout memory: not there" in done.stdout, "as the page says below it"
    assert done.stdout.count("asked:") == 2
    assert "franz-liszt" in done.stdout.splitlines()[-1]


@pytest.mark.usefixtures("working")
def test_the_tutorials_page_with_thumbs(live: LiveServer, application: Application) -> None:
    page = (ROOT / "docs" / "tutorial-frontend.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    assert len(program.splitlines()) < 35
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    program = program.replace("http://127.0.0.1:8000", live.url).replace("8001", str(port))
    serving = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    try:
        url = f"http://127.0.0.1:{port}"
        asked = httpx.Client(transport=httpx.HTTPTransport(retries=8), timeout=60).get(
            url, params={"q": question().text}
        )
        assert "Enceladus" in asked.text
        (query,) = re.findall(r"name=query value=(\S+)>", asked.text)
        for up in ("1", ""):
            assert "Thank you" in httpx.post(url, data={"query": query, "up": up}, timeout=60).text
    finally:
        serving.terminate()
        serving.communicate()
    ratings = state.rows(application, sample.COLLECTION, "feedback_event")
    assert sorted((row["rating"], row["status"]) for row in ratings)[1] == ("up", "revoked")
    assert {row["judge"] for row in ratings} == {"127.0.0.1"}


def passages(shown: str) -> list[str]:
    return re.findall(r'"passage_id":"([^"]*)"', shown)


def hops(shown: str) -> int:
    return int(re.findall(r'"hops":(\d+)', shown)[0])
