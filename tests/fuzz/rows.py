"""Requests in a row: what one answer names, the next asks for, along the links of the OpenAPI document."""

import contextlib
import io
import random
import time
from collections.abc import Mapping
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, seed
from hypothesis import settings as hypothesis_settings
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test
from schemathesis import Case, GenerationMode, Response
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.schemas import OpenApiSchema

from tests.api.contract import CONFIG, keyless
from tests.api.operations import OPERATIONS
from tests.fuzz.guests import Guests
from tests.fuzz.ledger import Ledger

SPARE = "spare"
"""The collection that requests may delete."""
ROWS_AT_ONCE = 200
STEPS = 10
NAMED_OFTEN = 4
RIGHT = """
[generation]
mode = "positive"
"""
"""What is wrong leads nowhere; mutated bodies see to that."""


class OutageError(Exception):
    """No answer came."""


class OverError(Exception):
    """The time is over."""


def build_schema() -> OpenApiSchema:
    """The document that rows follow, with the checks that hold for them.

    What is wrong is not sent, and a right value of a path that is written with ``%`` would pass for wrong.
    """
    config = SchemathesisConfig.from_str(CONFIG + RIGHT)
    config.projects.default.checks.negative_data_rejection.enabled = False
    return schemathesis.openapi.from_dict(keyless(OPERATIONS), config=config)


def run(
    url: str,
    known: Mapping[str, Any],
    first_seed: int,
    until: float,
    ledger: Ledger,
    patience: float,
    guests: Guests | None = None,
) -> int:
    """Rows of requests until that moment (``time.monotonic``), each a guest's; how many rows there were.

    A seed gives the same rows as long as the service answers the same.
    """
    machine = build_schema().as_state_machine()
    dice = random.Random(first_seed)
    rows = 0
    with requests.Session() as session:
        session.trust_env = False
        guest = None if guests is None else guests.owner

        class Rows(machine):  # type: ignore[misc, valid-type]
            def get_call_kwargs(self, case: Case) -> dict[str, Any]:
                return {"base_url": url, "session": session, "timeout": patience}

            def setup(self) -> None:
                nonlocal rows, guest
                super().setup()
                rows += 1
                if guests is not None:  # half of the rows get far
                    guest = guests.owner if rows % 2 else guests.get(rows)
                    session.headers.pop("authorization", None)
                    session.headers.update(guest.headers)

            def before_call(self, case: Case) -> None:
                if time.monotonic() > until:
                    raise OverError

            def call(self, case: Case, **more: Any) -> Response:
                sent = f"{case.method} {case.formatted_path} {case.query} {str(case.body)[:200]}"
                try:
                    return super().call(case, **more)
                except (requests.Timeout, requests.ConnectionError) as error:
                    ledger.record_hang("rows", case.operation.label, f"{sent}: {type(error).__name__}")
                    raise OutageError from error

            def step(self, input: Any) -> Any:
                linked = input.transition is not None and input.is_applied
                _use_known_names(input.case, known, dice, linked=linked)
                output = super().step(input)
                if linked and output.response.status_code < 300:
                    ledger.linked.add(input.case.operation.label)
                return output

            def validate_response(self, response: Response, case: Case, **more: Any) -> None:
                where, sent = case.operation.label, f"{case.method} {case.path} {str(case.body)[:200]}"
                ledger.record_answer("rows", where, response.status_code, response.elapsed, response.content, sent)
                if guests is not None and guest is not None and "authorization" not in (case.headers or {}):
                    guests.check(guest, where, response.status_code, response.content, sent, ledger)
                try:
                    super().validate_response(response, case, **more)
                except FailureGroup as failures:  # the row goes on
                    for failure in failures.exceptions:
                        if "Server error" not in getattr(failure, "title", ""):  # in the ledger by its status
                            ledger.record_finding("contract", where, f"{failure} <- {sent}")

        bounded = hypothesis_settings(
            max_examples=ROWS_AT_ONCE,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        while time.monotonic() < until:
            # Hypothesis remarks that the service remembers earlier rows, and an outage is in the ledger.
            with contextlib.suppress(OverError, OutageError, Flaky), contextlib.redirect_stdout(io.StringIO()):
                seed(first_seed + rows)(Rows)
                run_state_machine_as_test(Rows, settings=bounded)
    return rows


def _use_known_names(case: Case, known: Mapping[str, Any], dice: random.Random, *, linked: bool) -> None:
    """Have most requests speak of what there is, and none delete what others need."""
    here = known["collection"]
    if "name" in case.path_parameters:
        deletes = case.method.upper() == "DELETE"
        case.path_parameters = {**case.path_parameters, "name": SPARE if deletes else here}
    right = case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE
    if linked or not right or dice.randrange(NAMED_OFTEN) == 0:
        return
    for name, value in case.path_parameters.items():
        if name in known and dice.randrange(2):
            case.path_parameters = {**case.path_parameters, name: value or known[name]}
    if "collection" in {parameter.name for parameter in case.operation.query}:
        case.query = {**case.query, "collection": here}
    if isinstance(case.body, dict) and "collection" in case.body:
        case.body = {**case.body, "collection": here}
