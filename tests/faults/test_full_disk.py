"""A server that has no room, no memory, no connection left, or ends: 503 and when to come back, never 500.

Postgres itself gives the answer, with the SQLSTATE that it has for the case, out of a function of the test's.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psycopg
import pytest

from engram.composition.container import Application
from engram.storage.tables.table_base import metadata
from tests.api import operations
from tests.api.operations import OPERATIONS, assert_problem
from tests.faults.conftest import Working
from tests.support import state, undo
from tests.support.constants import APPLY_ATTEMPTS
from tests.support.orphans import orphans
from tests.support.processes import eventually
from tests.support.strict_client import TestClient

Bystander = psycopg.Connection[tuple[object, ...]]
STATES = {
    "disk full": "53100",
    "out of memory": "53200",
    "too many connections": "53300",
    "shut down by an administrator": "57P01",
    "starting up": "57P03",
    "disk failure": "58030",
}
# A server that became a standby, or whose provider made it read-only as its disk was full, still answers reads.
WRITING = STATES | {"takes no writes": "25006"}
QUESTION = "Where was Marie Curie born?"
ANSWERING = {"/healthz", "/readyz", "/audit", "/metrics", "/answer", "/queries:batch"}
ANSWERING |= {"/api/v1/files/{file_id}/process/status"}
"""Routes that look at no collection, or first at an id that no request here has; an answer needs an LLM first, and
a batch says it of each of its questions."""
WALKED = {"disk full", "takes no writes"}
"""States in which every route is asked; in the others it is the first, as one function tells all of them apart."""
REFUSED = ("refused_insert_memory_audit", "refused_delete_memory_audit", "refused_insert_passage")
"""How often a worker's loops were refused: the one that learns, the one that revokes, the one that ingests."""


@pytest.fixture(scope="module", autouse=True)
def failure(application: Application) -> None:
    """Functions that fail as they are told; sequences, which are not rolled back, count how often."""
    with application.database.write() as writer:
        for sequence in REFUSED:
            writer.execute(f"CREATE SEQUENCE {sequence}")
        writer.execute(
            """
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
            DECLARE counter text := lower('refused_' || TG_OP || '_' || TG_TABLE_NAME);
            BEGIN
                IF to_regclass(counter) IS NOT NULL THEN
                    PERFORM nextval(counter);
                END IF;
                RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = TG_ARGV[0];
            END $$
            """
        )
        writer.execute(
            """
            CREATE FUNCTION refusal(state text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
            BEGIN
                RAISE EXCEPTION 'could not read block 0' USING ERRCODE = state;
            END $$
            """
        )


@contextmanager
def unreadable(bystander: Bystander, code: str) -> Iterator[None]:
    """Whatever reads a collection fails."""
    bystander.execute("ALTER TABLE collection RENAME TO kept_collection")
    bystander.execute(f"CREATE VIEW collection AS SELECT * FROM kept_collection WHERE refusal('{code}')")
    try:
        yield
    finally:
        bystander.execute("DROP VIEW collection")
        bystander.execute("ALTER TABLE kept_collection RENAME TO collection")


@contextmanager
def unwritable(bystander: Bystander, code: str, *tables: str, at_commit: bool = False) -> Iterator[None]:
    """Whatever writes to these tables fails, all of them by default; at once or when the transaction commits."""
    chosen = tables or [table.name for table in metadata.sorted_tables]
    for table in chosen:
        bystander.execute(
            f"CREATE CONSTRAINT TRIGGER full_disk AFTER INSERT OR UPDATE OR DELETE ON {table} DEFERRABLE INITIALLY "
            f"DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse('{code}')"
            if at_commit
            else f"CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE OR DELETE ON {table} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION refuse('{code}')"
        )
    try:
        yield
    finally:
        for table in chosen:
            bystander.execute(f"DROP TRIGGER full_disk ON {table}")


def count_refusals(bystander: Bystander) -> list[int]:
    """How often each of the worker's loops was."""
    return [int(str(bystander.execute(f"SELECT last_value FROM {name}").fetchall()[0][0])) for name in REFUSED]


def assert_come_back_later(response: httpx.Response, what: object) -> None:
    assert response.status_code == 503, (what, response.text)
    assert_problem(response)
    assert response.json()["type"] == "urn:engram:problem:unavailable", what
    assert int(response.headers["retry-after"]) > 0, what


@pytest.mark.parametrize("failing", STATES)
def test_every_route_says_when_to_come_back(
    client: TestClient, curie: str, bystander: Bystander, failing: str
) -> None:
    with unreadable(bystander, STATES[failing]):
        for method, path in OPERATIONS if failing in WALKED else [("POST", "/query")]:
            if path in ANSWERING or path.startswith("/access/"):
                continue
            arguments = operations.well_formed(method, path, curie)
            url = operations.url(path.replace("{name}", curie))
            assert_come_back_later(client.request(method, url, **arguments), (method, path))
    assert client.get(f"/collections/{curie}").status_code == 200


def writes(client: TestClient, collection: str) -> list[dict[str, Any]]:
    """A request for each way to write to a collection that is judged, in an order in which all of them can work."""
    asked = client.post("/query", json={"collection": collection, "query": QUESTION}).json()
    verdict = {
        "collection": collection,
        "query_id": asked["query_id"],
        "supporting": [{"passage_id": "curie", "text": "Marie Curie was born in Warsaw in 1867."}],
    }
    first = client.post("/feedback", json=verdict | {"wait": True}, headers={"idempotency-key": "first"}).json()
    where = {"collection": collection}
    ndjson = {"content": b'{"id": "n", "text": "New."}', "headers": {"content-type": "application/x-ndjson"}}
    return [
        {"method": "POST", "url": "/query", "json": where | {"query": QUESTION}},
        {"method": "POST", "url": "/feedback", "json": verdict, "headers": {"idempotency-key": "a"}},
        {
            "method": "POST",
            "url": "/feedback",
            "json": verdict | {"wait": True},
            "headers": {"idempotency-key": "b"},
        },
        {"method": "POST", "url": "/feedback/retry", "json": where},
        {"method": "DELETE", "url": f"/feedback/{first['feedback_id']}", "params": where},
        {"method": "POST", "url": "/feedback/revoke", "json": where | {"all": True}},
        {
            "method": "POST",
            "url": "/passages",
            "params": where,
            "json": {"passages": [{"id": "m", "text": "New."}]},
        },
        {"method": "POST", "url": "/passages", "params": where, **ndjson},
        {"method": "DELETE", "url": "/passages/tokyo", "params": where},
        {"method": "POST", "url": f"/collections/{collection}/rekey", "json": {"key_building": "title"}},
        {"method": "POST", "url": f"/collections/{collection}/replay", "json": {"until": "2020-01-01T00:00:00Z"}},
        {"method": "POST", "url": f"/collections/{collection}/rollback", "json": {"generation": 0}},
        {"method": "DELETE", "url": f"/collections/{collection}"},
    ]


@pytest.mark.parametrize("failing", WRITING)
def test_every_write_says_when_to_come_back_and_works_once_there_is_room(
    client: TestClient, curie: str, bystander: Bystander, failing: str
) -> None:
    requests = writes(client, curie)[: None if failing in WALKED else 1]
    with unwritable(bystander, WRITING[failing]):
        for request in requests:
            assert_come_back_later(client.request(**request), request)
    for request in requests:
        assert client.request(**request).is_success, request


def test_a_disk_that_is_full_only_when_a_transaction_commits(
    client: TestClient, curie: str, bystander: Bystander
) -> None:
    ask = {"collection": curie, "query": QUESTION}
    with unwritable(bystander, "53100", "episode", at_commit=True):
        assert_come_back_later(client.post("/query", json=ask), "commit")
    assert client.post("/query", json=ask).status_code == 200


@pytest.mark.parametrize(
    ("failing", "at_commit"), [("disk full", False), ("disk failure", True)], ids=["at once", "at commit"]
)
def test_a_worker_waits_for_room_and_counts_no_try(
    application: Application, curie: str, bystander: Bystander, working: Working, failing: str, at_commit: bool
) -> None:
    revoked = f"{curie}-revoked"
    for name in (revoked, f"{curie}-ingested"):
        state.stage_passages(application, name, {"id": "a", "text": "Marie Curie was born in Warsaw."})
        if name == revoked:
            application.jobs.runner.run_ready()
    undo.apply(application, revoked, [add_pending_verdict(application, revoked)])
    undoing = application.learning.revocation.request(application.auth.access.scope(revoked))
    events = undo.stream(application, curie, 6, seed=41)

    for sequence in REFUSED:
        bystander.execute(f"ALTER SEQUENCE {sequence} RESTART")
    with working({APPLY_ATTEMPTS: 1}):
        with unwritable(bystander, STATES[failing], "memory_audit", "passage", at_commit=at_commit):
            eventually(lambda: min(count_refusals(bystander)) > 2, "trying")
            assert set(state.event_statuses(application, curie).values()) == {"pending"}
        eventually(lambda: set(state.event_statuses(application, curie).values()) == {"applied"})
        eventually(
            lambda: application.jobs.jobs.job(application.auth.access.scope(revoked), undoing).status == "succeeded"
        )
        eventually(lambda: state.counts(application, f"{curie}-ingested")[0] == 1)

    assert [row["attempts"] for row in state.rows(application, curie, "feedback_event")] == [0] * len(events)
    for name in (revoked, f"{curie}-ingested"):
        assert {row["attempts"] for row in state.rows(application, name, "job")} == {0}
    assert orphans(application, curie) == {}
    undo.assert_verified(application, curie)


def add_pending_verdict(application: Application, collection: str) -> int:
    """A verdict that waits."""
    sentences = state.list_sentence_ids(application, collection)
    query_id = state.add_episode(application, collection, QUESTION, sentences)
    return state.judge(application, collection, query_id, sentences[:1]).event.id
