"""A header that names the person whom a frontend asks for."""

import pytest

from engram.api.person_header import PersonHeader
from engram.api.request_principal import holder
from engram.composition.container import Application
from engram.context.errors import ConfigurationError, ForbiddenError
from engram.core.auth.access_keys import Grants
from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL, Principal
from tests.api.conftest import Variant
from tests.support.strict_client import TestClient

NAME = "X-OpenWebUI-User-Email"
FRONTEND = Principal(
    "frontend", "local", Grants.from_mapping({"docs": ["query", "act-as"], "other": ["query"], "*": ["read"]})
)


def asked(client: str, *values: str) -> dict[str, object]:
    """A request from an address with these values of the header."""
    headers = [(NAME.lower().encode(), value.encode()) for value in values]
    return {"type": "http", "headers": headers, "client": (client, 1)}


@pytest.mark.parametrize(
    ("setting", "client", "values", "reader"),
    [
        (f"{NAME} 10.0.0.7", "10.0.0.7", ["ana@example.org"], "user:ana@example.org"),
        (f"{NAME} 10.0.0.7, 172.16.0.0/12", "172.18.0.3", ["ana"], "user:ana"),
        (f"{NAME} 10.0.0.7", "::ffff:10.0.0.7", ["ana"], "user:ana"),
        (f"{NAME} fd00::/8", "fd00::1", ["ana"], "user:ana"),
        (f"{NAME} 10.0.0.7", "10.0.0.8", ["ana"], None),
        (f"{NAME} 10.0.0.7", "testclient", ["ana"], None),
        (f"{NAME} 10.0.0.7", "10.0.0.7", ["ana", "boss"], None),
        (f"{NAME} 10.0.0.7", "10.0.0.7", [""], None),
        (f"{NAME} 10.0.0.7", "10.0.0.7", ["a" * 200], None),
    ],
)
def test_the_header_is_believed_of_these_addresses(
    setting: str, client: str, values: list[str], reader: str | None
) -> None:
    header = PersonHeader.from_setting(setting)
    assert header is not None
    if reader is None:
        with pytest.raises(ForbiddenError):
            header.choose_principal(asked(client, *values), FRONTEND)
        return
    person = header.choose_principal(asked(client, *values), FRONTEND)
    assert (person.reads_as, person.caller) == ((reader,), "frontend")
    assert person.grants.as_json() == {"docs": ["query", "read"]}, "where the frontend may ask for others"


def test_a_request_without_the_header_is_the_frontends() -> None:
    header = PersonHeader.from_setting(f"{NAME} 10.0.0.7")
    assert header is not None
    assert header.choose_principal(asked("10.0.0.8"), FRONTEND) is FRONTEND


@pytest.mark.parametrize("setting", ["", NAME, f"{NAME} everywhere", f"{NAME} 10.0.0.7/8"])
def test_a_setting_names_addresses(setting: str) -> None:
    with pytest.raises(ConfigurationError, match="ENGRAM_PERSON_HEADER"):
        PersonHeader.from_setting(setting)


def test_addresses_that_everybody_may_claim_are_no_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    with pytest.raises(ConfigurationError, match="FORWARDED_ALLOW_IPS"):
        PersonHeader.from_setting(f"{NAME} 10.0.0.7")


@pytest.fixture(scope="module")
def named(lasting: Variant) -> Application:
    return lasting(access="keys", person_header=f"{NAME} 10.0.0.7")


@pytest.mark.parametrize(
    ("address", "scopes", "body", "status"),
    [
        ("10.0.0.7", ["query", "act-as"], {}, 200),
        ("10.0.0.7", ["query", "act-as"], {"as": ["user:boss"]}, 403),
        ("10.0.0.7", ["query"], {}, 403),
        ("10.0.0.8", ["query", "act-as"], {}, 403),
    ],
)
def test_questions_are_asked_for_the_person(
    named: Application, curie: str, address: str, scopes: list[str], body: dict[str, object], status: int
) -> None:
    request = AccessKeyRequest(name=f"{address} {curie} {len(scopes)} {len(body)}", scopes={curie: scopes})
    key = named.auth.access_keys.make(LOCAL, request).key
    client = TestClient(create_app(named), client=(address, 1))
    headers = {"authorization": f"Bearer {key}", NAME: "ana"}
    answer = client.post("/query", json={"collection": curie, "query": "Who?"} | body, headers=headers)
    assert answer.status_code == status, answer.text
    if status == 200:
        assert client.get("/access/me", headers=headers).json()["principals"] == ["user:ana"]


def test_the_header_says_nothing_by_default(http: TestClient) -> None:
    assert http.get("/access/me", headers={NAME: "ana"}).json()["principals"] == []


def test_limits_count_the_frontend_whomever_it_names() -> None:
    person = FRONTEND.name_person("user:ana")
    assert holder({"engram.principal": person}) == holder({"engram.principal": FRONTEND})
