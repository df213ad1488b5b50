"""Engram beside its releases: it opens what they wrote and works on, and their clients work with it.

Every release tag of this repository is tried; ``OTHER_REVISIONS=COMMIT,FOLDER pytest ...`` adds commits and folders
with wheels. Without any, the tests are skipped.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.wings.upkeep.storage import schema_drift
from tests.faults.installation import Installation
from tests.support import client_story, releases
from tests.support.databases import application_on, new_database
from tests.support.processes import Process

WORKING_TREE = Path(sys.executable)


@dataclass(frozen=True, slots=True)
class Place:
    """An empty database, and what leads processes to it."""

    servers: Servers
    env: dict[str, str]
    folder: Path

    def run(self, command: str, python: Path | None = None) -> None:
        """Run a command of the working tree, or of another revision, to its end."""
        with Process(command, self.folder, self.env, python=python) as process:
            assert process.wait_for_end() == 0, process.output

    @contextmanager
    def service(self, python: Path | None = None) -> Iterator[str]:
        """Serve during the block, with a worker; gives the address."""
        with ExitStack() as stack:
            api, worker = (
                stack.enter_context(Process(command, self.folder, self.env, python=python))
                for command in ("serve", "worker")
            )
            worker.ready()
            yield api.ready().url
            for process in (api, worker):
                process.terminate()
                assert process.wait_for_end() == 0, process.output

    @contextmanager
    def installation(self, settings: Settings, application: Application) -> Iterator[Installation]:
        """The working tree's application on this database."""
        with application_on(self.servers, settings, application) as services:
            yield Installation(services, self.env, self.folder)


@pytest.fixture
def place(addresses: Servers, settings: Settings, tmp_path: Path) -> Iterator[Place]:
    with new_database(addresses.database_url) as url:
        env = {
            "DATABASE_URL": url,
            "REDIS_URL": addresses.redis_url,
            "ENGRAM_DATA_DIR": str(settings.data_dir),
        }
        yield Place(Servers(url, addresses.redis_url), env, tmp_path)


@pytest.fixture(scope="module", params=releases.revisions() or [None])
def other(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of an environment with another revision."""
    if request.param is None:
        pytest.skip(f"there is no release tag here, and {releases.VARIABLE} names no revision")
    return releases.install(request.param, tmp_path_factory.mktemp("revision"))


def tell(python: Path, url: str, collection: str, written: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run the story with the client of an environment; with ``written`` it only reads."""
    earlier = [] if written is None else [json.dumps(written)]
    command = [str(python), client_story.__file__, url, collection, *earlier]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    story: dict[str, Any] = json.loads(run.stdout)
    return story


def assert_told(story: dict[str, Any]) -> None:
    """Hold the story against what was sent: nothing is lost, and what was repeated counts once."""
    written, read = story["written"], story["read"]
    assert read["passages"] == {passage["id"]: passage["text"] for passage in client_story.PASSAGES}
    assert written["changes"] > 0
    assert written["facts"]
    assert len(written["verdicts"]) == 3
    statuses = {int(event): status for event, (status, _) in read["verdicts"].items()}
    assert sorted(statuses) == written["verdicts"]
    assert statuses[written["revoked"]] == "revoked"
    assert {*written["facts"]} <= {fact for fact, _ in read["facts"]}  # an earlier version reads more from passages
    assert read["session"][1] == written["rounds"] > 0
    assert read["answer"][0] == "titan"


def test_another_revision_is_not_the_working_tree(other: Path) -> None:
    for package in ("engram", "engram_client"):
        command = [str(other), "-c", f"import {package}; print({package}.__file__)"]
        file = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert Path(file).is_relative_to(other.parents[1]), file


def test_the_working_tree_opens_what_another_revision_wrote(
    other: Path, place: Place, settings: Settings, application: Application
) -> None:
    place.run("migrate", other)
    with place.service(other) as url:
        before = tell(other, url, "story")
        assert_told(before)
        before = tell(other, url, "story", before["written"])  # by now the second verdict is applied
    place.run("migrate")
    with place.installation(settings, application) as site:
        assert schema_drift.list_missing(site.application.database) == []
        site.application.startup.check_encoders()
        assert site.findings() == []
        with place.service() as url:
            after = tell(WORKING_TREE, url, "story", before["written"])
            assert_told(after)
            for story in (before, after):
                del story["read"]["answer"]  # its ranking may have changed
            assert after == before
            assert_told(tell(WORKING_TREE, url, "another"))
            assert site.findings(workers=True) == []


def test_a_client_of_another_revision_works_with_the_service(
    other: Path, place: Place, settings: Settings, application: Application
) -> None:
    place.run("migrate")
    with place.installation(settings, application) as site, place.service() as url:
        assert_told(tell(other, url, "story"))
        assert site.findings(workers=True) == []
