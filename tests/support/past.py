"""A past state and the live one, to compare row by row."""

from datetime import datetime
from typing import Any

from engram.composition.container import Application
from engram.wings.history.parts import history_of
from engram.wings.history.services.past_copy import PastCopy
from tests.support import state, undo

CORPUS = (*state.GRAPH, *state.LEXICAL)
LEARNED = (*undo.PASSAGES_ONLY, *undo.KEYED, "expansion_unit", "question", "question_support")
Rows = list[dict[str, Any]]
BERLIN = {
    "id": "berlin",
    "title": "Berlin",
    "text": "Berlin is the capital of Germany. Berlin lies on the Spree. Warsaw is a city in Poland since 1300.",
}
"""A passage that shares a name with the collection of the tests."""


def now(application: Application) -> datetime:
    with application.database.read() as reader:
        moment: datetime = reader.scalar("SELECT clock_timestamp()")
    return moment


def corpus(application: Application, collection: str) -> dict[str, Rows]:
    """To the last byte."""
    counts = (
        "passage_count",
        "sentence_count",
        "entity_count",
        "lexical_length",
        "key_building",
        "encoder_fingerprint",
    )
    return state.snapshot(application, collection, CORPUS, ("collection_id",)) | {
        "counts": [{name: row[name] for name in counts} for row in rows_of_collection(application, collection)]
    }


def rows_of_collection(application: Application, collection: str) -> Rows:
    with application.database.read() as reader:
        return [
            dict(row._asdict())
            for row in reader.rows("SELECT * FROM collection WHERE name = %(name)s", {"name": collection})
        ]


def list_learned(application: Application, collection: str) -> dict[str, Rows]:
    """Of passages that are there, to the last byte, but for times of writing and the version of keys."""
    without = ("collection_id", "updated_at", "keys_version")
    found = {table: state.rows(application, collection, table, without) for table in LEARNED}
    there = state.passages(application, collection).values()
    found["key_credit"] = [row for row in found["key_credit"] if row["passage_id"] in there]
    return found | {"serves": [{"generation": rows_of_collection(application, collection)[0]["key_generation"]}]}


def list_meant(application: Application, collection: str) -> dict[str, Rows]:
    """As ``list_learned``, questions and units by their texts: those that went and came back have other ids."""
    found = undo.list_learned(application, collection)
    for row in (row for rows in found.values() for row in rows):
        row.pop("collection_id", None)
    return {table: sorted(rows, key=repr) for table, rows in found.items()}


def assert_nothing_left(
    application: Application, tables: tuple[str, ...] = (*CORPUS, *LEARNED, "judged_query")
) -> None:
    """No row belongs to a collection that there is not."""
    with application.database.read() as reader:
        for table in tables:
            assert (
                reader.scalar(
                    f"SELECT count(*) FROM {table} WHERE collection_id NOT IN (SELECT id FROM collection)"
                )
                == 0
            ), table


def rebuild_past(application: Application, collection: str, until: datetime, into: str | None = None) -> PastCopy:
    """By a job, as whoever asks for one has it made."""
    scope = application.auth.access.scope(collection)
    job_id = history_of(application).past.request(scope, until, into)
    application.jobs.runner.run_ready(collection_id=scope.collection.id)
    job = application.jobs.jobs.job(scope, job_id)
    assert (job.status, job.error) == ("succeeded", None)
    past = PastCopy(**({**(job.result or {})} | {"until": until}))
    undo.assert_verified(application, past.collection)
    return past
