"""The service keeps to its OpenAPI document whatever it is sent, alone and in a row.

Schemathesis makes up requests from the document, right ones and wrong ones, and holds the answers against it: no
failure of the server, no status, media type, header or body that is not documented, nothing wrong accepted and
nothing right refused. The requests go over TCP to the real application with a worker
beside it, on a database of its own, as some of them delete what they find.

``CONTRACT_EXAMPLES`` is the number of random requests per operation, and of rows of requests in fives. With it set
they are others each time, and each boundary of the document is tried in turn besides, methods that are not there
and missing headers among them:

    CONTRACT_EXAMPLES=1000 pytest tests/api/test_contract.py --timeout 0
"""

import contextlib
import math
import os
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, seed
from hypothesis import settings as hypothesis_settings
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test
from schemathesis import BaseSchema, Case, CheckContext, GenerationMode, Response
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import negative_data_rejection

from engram.api.schemas import MAX_ID
from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.runtime.api_process import create_app
from engram.runtime.worker import Worker
from engram.services.question.query import Query
from tests.api.contract import CONFIG, WITHOUT_BOUNDARIES, keyless
from tests.api.operations import OPERATIONS, WALKED, Operation
from tests.conftest import CURIE
from tests.fuzz import campaign
from tests.fuzz.ledger import Ledger
from tests.support import state
from tests.support.databases import application_on, open_migrated
from tests.support.live_server import LiveServer
from tests.support.processes import PATIENCE_SECONDS

pytestmark = pytest.mark.routes

GIVEN_EXAMPLES = os.environ.get("CONTRACT_EXAMPLES")
EXAMPLES = int(GIVEN_EXAMPLES or 2)
COLLECTION = "contract"
SPARE = {"name": "spare", "passage_id": "tokyo"}
"""What requests may delete."""

BODIES = {
    "/query", "/answer", "/expand", "/feedback", "/feedback/revoke", "/feedback/retry", "/facts", "/facts/search",
    "/sessions",
}  # fmt: skip

# Its requests are made up when they are asked for: by whoever collects the tests it would take half a minute.
schema = schemathesis.pytest.from_fixture("document")
bounded = hypothesis_settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=GIVEN_EXAMPLES is None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@dataclass(frozen=True)
class Live:
    """The running service, and ids of what it holds."""

    url: str
    session: requests.Session
    known: dict[str, Any]


def build_document(operations: Sequence[Operation]) -> BaseSchema:
    """What answers of these operations are held against."""
    config = CONFIG if GIVEN_EXAMPLES else CONFIG + WITHOUT_BOUNDARIES
    return schemathesis.openapi.from_dict(keyless(operations), config=SchemathesisConfig.from_str(config))


@pytest.fixture(scope="module")
def document() -> BaseSchema:
    """The operations that walks go over."""
    return build_document(WALKED)


@pytest.fixture(scope="module")
def live(settings: Settings, addresses: Servers, application: Application) -> Iterator[Live]:
    """An application on a database of its own, served over TCP, with a worker."""
    streams = Servers(addresses.database_url, addresses.redis_url.replace("db=0", "db=1"))
    assert streams.redis_url != addresses.redis_url
    with open_migrated(streams) as own, application_on(own, settings, application) as services:
        worker = Worker(services)
        working = threading.Thread(target=worker.run)
        working.start()
        try:
            with LiveServer(create_app(services)) as server, requests.Session() as session:
                session.trust_env = False
                yield Live(server.url, session, _fill_database(services))
        finally:
            worker.stop()
            working.join()


def _fill_database(services: Application) -> dict[str, Any]:
    """Fill the database, and name what it holds as the document's parameters do."""
    job = state.stage_passages(services, COLLECTION, *CURIE)
    spare = state.stage_passages(services, SPARE["name"], *CURIE)
    for collection, waiting in ((COLLECTION, job), (SPARE["name"], spare)):
        while services.jobs.jobs.job(services.auth.access.scope(collection), waiting).status != "succeeded":
            time.sleep(0.05)
    answer = services.answers.question.answer(
        Query(text="Where was Marie Curie born?", scope=services.auth.access.scope(COLLECTION))
    )
    sentences = state.list_sentence_ids(services, COLLECTION)
    event = state.judge(services, COLLECTION, answer.query_id, sentences[:1], wait=True).event
    return {
        "collection": COLLECTION,
        "name": COLLECTION,
        "passage_id": "curie",
        "query_id": str(answer.query_id),
        "job_id": str(job),
        "feedback_id": event.id,
        "sentences": sentences,
    }


def _use_stored_names(case: Case, known: dict[str, Any], *, in_a_row: bool = False) -> None:
    """Have three of four right requests speak of what there is, which by chance they never would.

    The collection and the passage that are deleted are those that nothing else speaks of.
    """
    chosen = zlib.crc32(repr(case).encode())
    if case.meta is None or case.meta.generation.mode is not GenerationMode.POSITIVE or chosen % 4 == 0:
        return
    here = known | (SPARE if case.method.upper() == "DELETE" else {})
    if not in_a_row:  # else what an earlier answer named
        case.path_parameters = {name: here.get(name, value) for name, value in case.path_parameters.items()}
    elif "name" in case.path_parameters:
        case.path_parameters = {**case.path_parameters, "name": here["name"]}
    if "collection" in {parameter.name for parameter in case.operation.query}:
        case.query = {**case.query, "collection": here["collection"]}
    if isinstance(case.body, dict) and case.path in BODIES:
        named = {name: here[name] for name in ("query_id",) if name in case.body and not in_a_row}
        lists = {
            name: here["sentences"][chosen % 3 + at : chosen % 3 + at + 2]
            for at, name in enumerate(("supporting", "rejected", "missed"))
            if case.body.get(name) and chosen % 3
        }
        case.body = {**case.body, "collection": here["collection"], **named, **lists}


def _is_alternative(error: dict[str, Any], ruled: list[list[str]]) -> bool:
    """Tell whether a value of several types, which a rule refuses as one of them, is merely none of another."""
    *place, _ = error["loc"]
    return error["type"].endswith("_type") and len(place) > 1 and any(loc[: len(place)] == place for loc in ruled)


def right_is_not_refused(_context: CheckContext, response: Response, case: Case) -> None:
    """What agrees with the document is refused only for what a schema cannot say: a rule between fields or on the
    characters of a text (`value_error`), and what the collection holds (no `errors`).
    """
    if case.meta is None or case.meta.generation.mode is not GenerationMode.POSITIVE:
        return
    assert response.status_code != 400, response.text
    if response.status_code == 422:
        errors = response.json().get("errors", ())
        ruled = [error["loc"] for error in errors if error["type"] == "value_error"]
        # Names of properties are made up without a look at what the document says of them.
        unsaid = [
            error
            for error in errors
            if error["type"] != "value_error" and "[key]" not in error["loc"] and not _is_alternative(error, ruled)
        ]
        # Schemathesis compares integers as floats, to which the largest id and the next number are one.
        assert all(str(MAX_ID) in error["msg"] for error in unsaid), unsaid


def _is_right_despite_its_mode(case: Case) -> bool:
    """Tell whether Schemathesis describes a request as right and counts it among the wrong ones all the same."""
    description = None if case.meta is None else case.meta.phase.data.description
    return (description or "").lower() == "positive test case"


@schema.parametrize()
@bounded
def test_operation_answers_as_documented(case: Case, live: Live) -> None:
    _use_stored_names(case, live.known)
    case.call_and_validate(
        base_url=live.url,
        session=live.session,
        timeout=PATIENCE_SECONDS,
        additional_checks=[right_is_not_refused],
        excluded_checks=[negative_data_rejection] if _is_right_despite_its_mode(case) else [],
    )


@pytest.mark.wing("experiments", "facts", "frontends", "importing", "sessions")
def test_operations_in_a_row(live: Live) -> None:
    """What one answer names, the next request asks for, changes or deletes."""
    document = build_document(OPERATIONS)
    failures: list[Exception] = []
    answered: list[int] = []

    class Rows(document.as_state_machine()):  # type: ignore[misc]
        def get_call_kwargs(self, case: Case) -> dict[str, Any]:
            return {"base_url": live.url, "session": live.session, "timeout": PATIENCE_SECONDS}

        def before_call(self, case: Case) -> None:
            _use_stored_names(case, live.known, in_a_row=True)

        def validate_response(self, response: Response, case: Case, **more: Any) -> None:
            answered.append(response.status_code)
            try:
                super().validate_response(response, case, additional_checks=[right_is_not_refused], **more)
            except Exception as failure:
                failures.append(failure)
                raise

    rows = hypothesis_settings(
        bounded, max_examples=5, stateful_step_count=6, phases=[Phase.generate], derandomize=False
    )
    for number in range(EXAMPLES):
        # The service remembers earlier rows, so that Hypothesis sees the same row go on in another way, and ends.
        with contextlib.suppress(Flaky):
            seed(number if GIVEN_EXAMPLES is None else uuid4().int)(Rows)
            run_state_machine_as_test(Rows, settings=rows)
        if failures:
            raise failures[0]
    assert 200 in answered


def test_bodies_that_were_right_once(live: Live) -> None:
    """A few of those that ``python -m tests.fuzz`` sends by the thousand."""
    ledger = Ledger(slow_seconds=math.inf)
    seed_ = 0 if GIVEN_EXAMPLES is None else uuid4().int
    assert campaign.bodies(live.url, live.known, seed_, campaign.Bounds(60, 20 * EXAMPLES, 0), ledger) > 0
    campaign.account(live.url, ledger)
    assert not ledger.findings
