"""Sources synchronised by the real oikb: its client, its order of requests and its connectors."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from oikb.client import OikbClient
from oikb.connectors.filesystem import FilesystemConnector
from oikb.sync import SyncResult, run_sync

from engram.composition.container import Application
from tests.support import state
from tests.wings.importing.test_learning_follows import assert_sound, taught, teach


@pytest.fixture
def client(service: str) -> Iterator[OikbClient]:
    with OikbClient(service, "none") as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of three files, one in a directory."""
    folder = tmp_path / "handbook"
    (folder / "travel").mkdir(parents=True)
    (folder / "travel" / "trains.md").write_text("# Trains\n\nTake the train to Basel.\n")
    (folder / "food.txt").write_text("Lunch is at noon.\n")
    (folder / "pay.md").write_text("# Pay\n\nPay day is the first. Bonuses come in May.\n")
    return folder


def run_jobs(application: Application) -> None:
    while application.jobs.runner.run_ready():
        pass


def sync(application: Application, client: OikbClient, folder: Path, collection: str) -> SyncResult:
    """Run the tool once, then the jobs that its uploads made."""
    result = run_sync(client, FilesystemConnector(folder), collection, quiet=True)
    run_jobs(application)
    return result


def counts(result: SyncResult) -> tuple[int, int, int, int]:
    return result.added, result.modified, result.deleted, result.unmodified


def sources(application: Application, collection: str) -> list[str]:
    return sorted(row["source"] for row in state.rows(application, collection, "document"))


def test_a_folder(application: Application, client: OikbClient, folder: Path, collection: str) -> None:
    first = sync(application, client, folder, collection)
    assert (counts(first), first.errors, first.warnings) == ((3, 0, 0, 0), [], [])
    assert sources(application, collection) == ["oikb/food.txt", "oikb/pay.md", "oikb/travel/trains.md"]
    teach(application, collection, "Take the train to Basel.", "Pay day is the first.")
    (folder / "pay.md").write_text("# Pay\n\nPay day is the first. Bonuses come in June.\n")
    (folder / "rail").mkdir()
    (folder / "travel" / "trains.md").rename(folder / "rail" / "trains.md")
    (folder / "food.txt").unlink()
    second = sync(application, client, folder, collection)
    assert (counts(second), second.errors) == ((0, 1, 2, 0), [])
    assert sources(application, collection) == ["oikb/pay.md", "oikb/rail/trains.md"]
    assert taught(application, collection) == ["Pay day is the first.", "Take the train to Basel."]
    assert_sound(application, collection)
    third = sync(application, client, folder, collection)
    assert counts(third) == (0, 0, 0, 2)
