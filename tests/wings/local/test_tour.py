"""The tour's commands and the tutorial's program, run against a live service, show what they say they show."""

import io
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from engram.composition.container import Application
from engram.context.errors import NotFoundError
from engram.runtime.api_process import create_app
from engram.wings.local import sample
from engram.wings.local.sample.tour import question, tour
from tests.support.jobs import run_to_end
from tests.support.live_server import LiveServer
from tests.support.processes import PATIENCE_SECONDS, free_port

GOLD = {passage for passage, _ in question().supporting}
SHOWN = 5
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def live(application: Application) -> Iterator[LiveServer]:
    """A service that holds the sample corpus and has learned nothing of it."""
    with suppress(NotFoundError):
        application.corpus.ingest.delete_collection(application.auth.access.scope(sample.COLLECTION))
    with LiveServer(create_app(application)) as server:
        headers = {"content-type": "application/x-ndjson"}
        url = f"{server.url}/passages?collection={sample.COLLECTION}"
        accepted = httpx.post(url, content=sample.corpus(), headers=headers, timeout=60)
        assert accepted.status_code == 202
        scope = application.auth.access.scope(sample.COLLECTION)
        run_to_end(application, scope, UUID(accepted.json()["job_id"]))
        yield server
    application.corpus.ingest.delete_collection(application.auth.access.scope(sample.COLLECTION))


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


def test_the_programs_of_the_page_on_frontends(live: LiveServer) -> None:
    page = (ROOT / "docs" / "frontends.md").read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(programs) == 2
    shown = [run(program.replace("http://127.0.0.1:8000", live.url)) for program in programs]
    assert "Enceladus was discovered in August 1789 by William Herschel." in shown[0]
    assert re.search(r"^[01]\.\d+ Enceladus ", shown[0], re.MULTILINE)
    assert re.search(r"^\[\(0, [01]\.\d+\), \(1, [01]\.\d+\)\] [0-9a-f-]{36}$", shown[1], re.MULTILINE)


def run(program: str) -> str:
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(program, "<page>", "exec"), {"__name__": "__main__"})
    return printed.getvalue()


@pytest.mark.usefixtures("working")
def test_the_chat_page_of_the_tutorial(live: LiveServer, application: Application, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tutorial-frontend.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    port = free_port()
    path = tmp_path / "chat_page.py"
    path.write_text(program.replace("http://127.0.0.1:8000", live.url).replace("8080", str(port)), encoding="utf-8")
    process = subprocess.Popen([sys.executable, str(path)])
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as browser:
            assert "name=question" in open_page(browser)
            answered = browser.post("/", data={"question": "Who discovered Enceladus?"}).text
            assert "The collection says:" in answered
            for rating in ("up", "down"):
                form = dict(re.findall(r'name=(query_id|cited) value="([^"]*)"', answered))
                assert f"name=rating value={rating}" in answered
                assert "Thank you" in browser.post("/", data=form | {"rating": rating}).text
                here = {"collection": sample.COLLECTION}
                verdict = httpx.get(f"{live.url}/feedback", params=here).json()["feedback"][-1]
                assert verdict["query_id"] == form["query_id"]
                told = httpx.get(f"{live.url}/feedback/{verdict['feedback_id']}", params=here).json()
                assert told["verdict"]["rating"] == rating
    finally:
        process.terminate()
        process.wait(20)


def open_page(browser: httpx.Client) -> str:
    """The page, once it is served."""
    for _ in range(int(PATIENCE_SECONDS / 0.1)):
        with suppress(httpx.ConnectError):
            return browser.get("/").text
        time.sleep(0.1)
    raise AssertionError("the page is not served")


def passages(shown: str) -> list[str]:
    return re.findall(r'"passage_id":"([^"]*)"', shown)


def hops(shown: str) -> int:
    return int(re.findall(r'"hops":(\d+)', shown)[0])
