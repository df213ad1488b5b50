"""That every request looks the collection that it names up once."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from httpx import Response

from engram.composition.container import Application
from engram.runtime.api_process import create_app
from engram.storage.database import observe_sql
from tests.api.conftest import Variant
from tests.api.operations import (
    BODIES,
    DOCUMENT,
    MAKING,
    WALKED,
    WITH_BODIES,
    WORDED,
    Operation,
    assert_problem,
    url,
    well_formed,
)
from tests.conftest import CURIE, Ingest
from tests.support import state
from tests.support.strict_client import TestClient

BY_NAME = re.compile(r"FROM collection\b.*\bname = ")


def names_a_collection(operation: Operation) -> bool:
    method, path = operation
    parameters = DOCUMENT["paths"][path][method.lower()].get("parameters", [])
    inside = (
        method in WITH_BODIES
        and path in BODIES
        and path not in ("/documents", "/passages")
        and not path.startswith("/access/")
    )
    return "{name}" in path or inside or "collection" in {parameter["name"] for parameter in parameters}


BATCH = ("POST", "/queries:batch")
"""Each of its questions names one."""
DELETION = ("DELETE", "/collections/{name}")
"""It is asked for last."""
NAMING_OPERATIONS = [operation for operation in WALKED if names_a_collection(operation) and operation != BATCH]


@contextmanager
def record_lookups(name: str = "no-such-collection") -> Iterator[list[str]]:
    """The statements of the block that find the collection by its name."""
    noted: list[str] = []

    def note(_connection: object, statement: str, parameters: Mapping[str, Any]) -> None:
        if BY_NAME.search(" ".join(statement.split())) and name in parameters.values():
            noted.append(statement)

    with observe_sql(note):
        yield noted


@pytest.mark.routes
def test_each_request_resolves_its_collection_once(http: TestClient, variant: Variant, curie: str) -> None:
    # A verdict names a collection that the process may remember; this one remembers none.
    fresh = TestClient(create_app(variant()))
    for method, path in sorted(NAMING_OPERATIONS, key=lambda operation: operation == DELETION):
        client = fresh if path == "/feedback" and method == "POST" else http
        with record_lookups(curie) as found:
            answer = client.request(method, url(path.replace("{name}", curie)), **well_formed(method, path, curie))
        assert answer.status_code < 500 or answer.status_code == 503, (path, answer.text)
        assert len(found) == 1, (method, path)


@pytest.mark.routes
def test_a_collection_that_is_not_there_is_looked_up_once_as_well(http: TestClient) -> None:
    for method, path in NAMING_OPERATIONS:
        if method == "POST" and path in MAKING:
            continue
        with record_lookups() as found:
            answer = http.request(method, url(path), **well_formed(method, path))
        assert_problem(answer)
        if path in WORDED:  # nothing is looked for where no endpoint could put it into words
            assert answer.json()["type"] == "urn:engram:problem:llm-not-configured"
        else:
            assert answer.status_code == 404, (method, path)
            assert answer.json()["detail"] == "There is no collection 'no-such-collection'."
        assert len(found) == 1, (method, path)


def test_a_verdict_goes_to_the_collection_that_has_the_name_now(
    application: Application, http: TestClient, curie: str, ingest: Ingest, variant: Variant
) -> None:
    before = application.auth.access.scope(curie)
    processes = {key: variant() for key in ("first", "second", "third")}
    for process in processes.values():
        process.auth.access.scope(curie)

    def post_verdict(key: str) -> Response:
        """A verdict on a new answer, posted by a process that remembers the collection of before."""
        asked = http.post("/query", json={"query": "Where was Marie Curie born?", "collection": curie}).json()
        body = {"query_id": asked.get("query_id", str(UUID(int=0))), "collection": curie}
        client = TestClient(create_app(processes[key]))
        return client.post("/feedback", json=body, headers={"idempotency-key": key})

    with record_lookups(curie) as found:
        assert post_verdict("first").status_code == 202
    assert len(found) == 1  # the question's

    application.corpus.ingest.delete_collection(before)
    gone = post_verdict("second")
    assert (gone.status_code, gone.json()["detail"]) == (404, f"There is no collection {curie!r}.")

    ingest(*CURIE)
    assert post_verdict("third").status_code == 202
    now = processes["third"].auth.access.find_remembered_scope(curie)
    assert now is not None
    assert now.collection.id > before.collection.id
    assert set(state.event_statuses(application, curie).values()) == {"pending"}
