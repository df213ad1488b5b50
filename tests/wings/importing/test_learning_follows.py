"""What was learned of a document follows its text into a new version, another name and another cut."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from tests.support import state
from tests.support.command import Cli
from tests.support.strict_client import TestClient

BINARY = {"content-type": "application/octet-stream"}
TRAVEL = "# Travel\n\n## Trains\n\nTake the train to Basel. {}\n\n## Planes\n\nNobody flies to Bern.\n"
FOOD = "# Food\n\nLunch is at noon. Supper is at six.\n"
Import = Callable[..., dict[str, Any]]


@pytest.fixture
def collection() -> str:
    return f"follow-{uuid4().hex[:8]}"


@pytest.fixture
def put(http: TestClient, application: Application, collection: str) -> Import:
    def put(name: str, text: str, **more: Any) -> dict[str, Any]:
        """Import a document, and return its job once it is done."""
        answer = http.post(
            "/documents", params={"name": name, "collection": collection, **more}, content=text, headers=BINARY
        )
        answer.raise_for_status()
        return finish(http, application, answer.json()["status_url"])

    return put


def finish(http: TestClient, application: Application, status_url: str) -> dict[str, Any]:
    while application.jobs.runner.run_ready():
        pass
    job: dict[str, Any] = http.get(status_url).raise_for_status().json()
    assert job["status"] == "succeeded", job
    return job


def teach(application: Application, collection: str, *texts: str) -> None:
    """Give a verdict that supports these sentences."""
    sentences = [id for id, text in texts_by_id(application, collection).items() if text in texts]
    query = state.add_episode(application, collection, "How do I travel?", sentences)
    state.judge(application, collection, query, sentences, wait=True)


def texts_by_id(application: Application, collection: str) -> dict[int, str]:
    return {row["id"]: row["text"] for row in state.rows(application, collection, "sentence")}


def taught(application: Application, collection: str) -> list[str]:
    """Texts of the sentences that have a memory."""
    memories = state.rows(application, collection, "sentence_memory")
    known = texts_by_id(application, collection)
    return sorted({known[row["sentence_id"]] for row in memories})


def passages(application: Application, collection: str) -> dict[str, str]:
    """External id -> text, in the order in which the rows were made."""
    rows = sorted(state.rows(application, collection, "passage"), key=lambda row: row["id"])
    return {row["external_id"]: row["text"] for row in rows}


def assert_sound(application: Application, collection: str) -> None:
    """Nothing differs from a replay of the log, no text is there twice, and all counts are true."""
    report = application.revocation.verification.verify(application.auth.access.scope(collection))
    assert report.differences == []
    texts = list(passages(application, collection).values())
    assert len(set(texts)) == len(texts)
    assert state.counts(application, collection) == state.true_counts(application, collection)


def test_a_section_before_others_takes_nothing_of_them(
    put: Import, application: Application, collection: str
) -> None:
    put("a.md", TRAVEL.format("It is fast."))
    teach(application, collection, "Take the train to Basel.", "Nobody flies to Bern.")
    before = state.list_learned(application, collection)
    job = put("a.md", TRAVEL.format("It is fast.").replace("## Trains", "## Feet\n\nOr walk.\n\n## Trains"))
    assert (job["created"], job["unchanged"]) == (1, 2)
    assert list(passages(application, collection)) == ["a.md#2", "a.md#3", "a.md#1"]
    assert state.list_learned(application, collection) == before
    assert_sound(application, collection)


def test_a_changed_sentence_loses_what_was_learned_of_it_and_its_neighbours_do_not(
    put: Import, application: Application, collection: str
) -> None:
    put("a.md", TRAVEL.format("It is fast."))
    teach(application, collection, "Take the train to Basel.", "It is fast.")
    put("a.md", TRAVEL.format("It is slow."))
    assert taught(application, collection) == ["Take the train to Basel."]
    assert_sound(application, collection)


def test_why_tells_verdicts_on_an_earlier_text_apart(
    put: Import, application: Application, collection: str, http: TestClient
) -> None:
    put("a.md", TRAVEL.format("It is fast."))
    teach(application, collection, "Take the train to Basel.", "Nobody flies to Bern.")
    (applied_at,) = (row["applied_at"] for row in state.rows(application, collection, "feedback_event"))
    put("a.md", "New words.\n\n" + TRAVEL.format("It is slow."))
    body = {
        "query": "Who takes the train to Basel or flies to Bern?",
        "collection": collection,
        "include": ["trace"],
    }
    passages = http.post("/query", json=body).raise_for_status().json()["trace"]["passages"]
    since = {one["passage_id"]: datetime.fromisoformat(one["text_since"]) for one in passages}
    applied = datetime.fromisoformat(applied_at)
    assert since["a.md#2"] > applied > since["a.md#3"]


def test_a_section_or_document_that_was_away_returns_with_what_was_learned(
    put: Import, application: Application, collection: str, http: TestClient
) -> None:
    whole = TRAVEL.format("It is fast.")
    put("a.md", whole)
    teach(application, collection, "Take the train to Basel.", "Nobody flies to Bern.")
    before = state.list_learned(application, collection)
    put("a.md", whole.partition("## Planes")[0])
    assert taught(application, collection) == ["Take the train to Basel."]
    put("a.md", "# Travel\n\n## Feet\n\nOr walk.\n\n" + whole.partition("# Travel\n\n")[2])
    assert state.list_learned(application, collection) == before
    http.delete("/documents/a.md", params={"collection": collection}).raise_for_status()
    assert taught(application, collection) == []
    put("a.md", whole)
    assert state.list_learned(application, collection) == before
    assert state.rows(application, collection, "removed_passage") == []
    assert_sound(application, collection)


@pytest.mark.parametrize(("first", "second"), [(1_000, 100), (100, 1_000)], ids=["smaller", "larger"])
def test_another_size_keeps_what_was_learned_of_sentences(
    put: Import, application: Application, collection: str, first: int, second: int
) -> None:
    text = " ".join(f"The train number {number} goes to town number {number * 7}." for number in range(12))
    put("a.md", text, size=first, overlap=0)
    taught_texts = [f"The train number {number} goes to town number {number * 7}." for number in (0, 5, 11)]
    teach(application, collection, *taught_texts)
    before = state.list_learned(application, collection)
    put("a.md", text, size=second, overlap=0)
    assert state.list_learned(application, collection) == before
    assert taught(application, collection) == sorted(taught_texts)
    for row in state.rows(application, collection, "entity_sentence"):
        assert row["passage_id"] == passage_of(application, collection, row["sentence_id"])
    assert_sound(application, collection)


def passage_of(application: Application, collection: str, sentence: int) -> int:
    rows = state.rows(application, collection, "sentence")
    return next(int(row["passage_id"]) for row in rows if row["id"] == sentence)


def test_the_same_text_under_two_sources_is_two_documents(
    put: Import, application: Application, collection: str, http: TestClient
) -> None:
    put("a.md", FOOD)
    teach(application, collection, "Lunch is at noon.")
    before = state.list_learned(application, collection)
    put("b.md", FOOD)
    assert list(passages(application, collection)) == ["a.md#1", "b.md#1"]
    listed = http.get("/documents", params={"collection": collection}).json()["documents"]
    assert [(one["source"], one["passages"]) for one in listed] == [("a.md", 1), ("b.md", 1)]
    assert state.list_learned(application, collection) == before


def test_a_revocation_finds_what_moved(put: Import, application: Application, collection: str) -> None:
    put("a.md", TRAVEL.format("It is fast."))
    teach(application, collection, "Take the train to Basel.")
    put("a.md", "New words here.\n\n" + TRAVEL.format("It is fast."))
    (event,) = (row["id"] for row in state.rows(application, collection, "feedback_event"))
    application.learning.revocation.revoke(application.auth.access.scope(collection), event)
    assert state.rows(application, collection, "sentence_memory") == []
    assert_sound(application, collection)


@pytest.mark.usefixtures("working")
def test_a_renamed_folder_with_a_new_section_keeps_every_verdict(
    cli: Cli, application: Application, collection: str, tmp_path: Path
) -> None:
    folder = tmp_path / "handbook"
    folder.mkdir()
    (folder / "travel.md").write_text(TRAVEL.format("It is fast."))
    (folder / "food.md").write_text(FOOD)
    assert cli("import", str(folder), "-c", collection, "--prefix", "handbook").returncode == 0
    teach(application, collection, "Take the train to Basel.", "Nobody flies to Bern.", "Lunch is at noon.")
    before = state.list_learned(application, collection)

    renamed = folder.rename(tmp_path / "manual")
    (renamed / "travel.md").rename(renamed / "journeys.md")
    (renamed / "journeys.md").write_text(
        TRAVEL.format("It is fast.").replace("## Trains", "## Feet\n\nOr walk.\n\n## Trains")
    )
    done = cli("import", str(renamed), "-c", collection, "--prefix", "manual")
    assert done.returncode == 0, done.stderr
    assert "under another name now: handbook/food.md, handbook/travel.md" in done.stdout
    assert sorted(passages(application, collection)) == [
        "manual/food.md#1",
        "manual/journeys.md#1",
        "manual/journeys.md#2",
        "manual/journeys.md#3",
    ]
    assert state.list_learned(application, collection) == before
    assert_sound(application, collection)


@pytest.mark.usefixtures("working")
def test_one_file_of_a_folder_updates_its_document_whichever_way_it_is_named(
    cli: Cli, application: Application, collection: str, tmp_path: Path
) -> None:
    folder = tmp_path / "handbook"
    (folder / "deep").mkdir(parents=True)
    (folder / "food.md").write_text(FOOD)
    (folder / "deep" / "food.md").write_text(TRAVEL.format("It is fast."))
    assert cli("import", str(folder), "-c", collection).returncode == 0
    (folder / "deep" / "food.md").write_text("Something else.")
    (folder / "deep" / "new.md").write_text("Quite new.")
    assert cli("import", str(folder / "deep" / "food.md"), "-c", collection).returncode == 0
    assert cli("import", str(folder / "deep" / ".." / "deep" / "new.md"), "-c", collection).returncode == 0
    assert sorted(passages(application, collection)) == ["deep/food.md#1", "deep/new.md#1", "food.md#1"]
    assert "deep/food.md" in cli("document", "list", "-c", collection, "--prefix", "deep/").stdout
    assert cli("document", "delete", "deep/food.md", "-c", collection).returncode == 0
    assert sorted(passages(application, collection)) == ["deep/new.md#1", "food.md#1"]
    assert "There is no document" in cli.fails("document", "delete", "deep/food.md", "-c", collection)
