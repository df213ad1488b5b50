"""Identity providers whose headers never end: nobody waits for them."""

import time

import pytest

from engram.context.errors import UnavailableError
from engram.providers import jwt_keys, openid_login
from engram.providers.openid_login import LoginAttempt, LoginClient
from tests.support.dripping_server import drip_headers


def test_an_exchange_of_a_code_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openid_login, "TIMEOUT_SECONDS", 0.1)
    with drip_headers() as address, pytest.raises(UnavailableError, match="out of reach"):
        openid_login.exchange_code(
            {"token_endpoint": address},
            LoginClient("engram", None),
            LoginAttempt("s", "n", "v" * 43),
            address,
            "code",
        )


def test_a_fetch_of_keys_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jwt_keys, "WHOLE_TIMEOUT_SECONDS", 0.1)
    began = time.monotonic()
    with drip_headers() as address:
        assert jwt_keys.ProviderKeys(address).wait(5.0)
    assert time.monotonic() - began < 5.0
