"""Whoever fails to authenticate too often has to wait; whoever was known before has not."""

import pytest

from engram.context.errors import TooManyRequestsError
from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.failed_attempts import BURST, FailedAttempts
from engram.services.auth.scope import LOCAL
from tests.api.conftest import Variant
from tests.api.operations import assert_problem
from tests.support.strict_client import TestClient


def test_junk_tokens_are_soon_refused_unread(variant: Variant) -> None:
    keyed = variant(access="keys")
    made = keyed.auth.access_keys.make(LOCAL, AccessKeyRequest(name="known", scopes={"*": ["read"]}))
    known = {"authorization": f"Bearer {made.key}"}
    client = TestClient(create_app(keyed))
    assert client.get("/collections", headers=known).status_code == 200
    answers = [
        client.get("/collections", headers={"authorization": f"Bearer a.{at}.c"}) for at in range(int(BURST) + 5)
    ]
    assert {answer.status_code for answer in answers[: int(BURST)]} == {401}
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused, "each takes a second, in which the address gets one more try"
    assert refused[0].headers["retry-after"]
    assert_problem(refused[0])
    keyed.auth.authentication.forget()
    assert client.get("/collections", headers=known).status_code == 200, "it was good before"


def test_an_address_may_try_again_after_a_while() -> None:
    now = [0.0]
    failed = FailedAttempts(lambda: now[0])
    for _ in range(int(BURST)):
        failed.check("a")
        failed.count("a")
    with pytest.raises(TooManyRequestsError) as caught:
        failed.check("a")
    assert caught.value.retry_after_seconds == 1.0
    failed.check("b")
    now[0] += 1.0
    failed.check("a")
