"""One API for collections of several databases: it forwards requests to the API of the database they are in."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import httpx
import pytest
from pydantic import SecretStr

from engram.api.login_cookies import PAGE_HEADER
from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context.errors import ConfigurationError, ConflictError, NotFoundError
from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from engram.wings.upkeep.services.collection_move import (
    CollectionMoveService,
    Place,
    check_address,
    forward,
    stop_forwarding,
)
from tests.api.test_login import ask_provider
from tests.conftest import CURIE, ingest_passages
from tests.support.command import Cli
from tests.support.databases import application_on, open_migrated
from tests.support.identity_provider import AUDIENCE, IdentityProvider
from tests.support.live_server import LiveServer
from tests.support.strict_client import TestClient

QUESTION = {"query": "Where was Marie Curie born?", "collection": "moved"}
TENANT = "local"
PERSON = {"x-person": "ana"}


class Two(NamedTuple):
    """A service, a client of it, and one whose API runs at ``url``."""

    here: Application
    client: TestClient
    there: Application
    url: str


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider.serve({"*": ["query", "read", "judge", "ingest"]}) as served:
        yield served


def move_between(here: Application, there: Application) -> CollectionMoveService:
    source, target = (Place(each.database, each.revocation.verification) for each in (here, there))
    return CollectionMoveService(source, target, index_memory_mb=64)


@pytest.fixture(scope="module")
def two(
    addresses: Servers, settings: Settings, application: Application, provider: IdentityProvider
) -> Iterator[Two]:
    """The collection ``moved`` came from the first service to the second, ``stays`` did not."""
    known: dict[str, Any] = {"access": "keys", "jwt_issuer": provider.url, "jwt_audience": AUDIENCE}
    known |= {"login_client": SecretStr("pages secret")}
    here_settings = settings.model_copy(update=known | {"person_header": "x-person 192.0.2.1"})
    with ExitStack() as stack:
        here, there = (
            stack.enter_context(application_on(stack.enter_context(open_migrated(addresses)), chosen, application))
            for chosen in (here_settings, settings.model_copy(update=known))
        )
        for services in (here, there):
            assert services.models.provider_keys is not None
            assert services.models.provider_keys.wait(30)
        hidden = {"id": "hidden", "text": "Marie Curie was born at 16 Freta Street.", "readers": ["user:bo"]}
        ingest_passages(here, "moved", *CURIE, hidden)
        ingest_passages(here, "stays", *CURIE)
        server = stack.enter_context(LiveServer(create_app(there)))
        move_between(here, there).move("moved", TENANT, forward_to=f"{server.url}/")
        assert here.maintenance.removal.run() == 1
        client = stack.enter_context(TestClient(create_app(here), raise_server_exceptions=False))
        yield Two(here, client, there, server.url)


@pytest.fixture
def ana(provider: IdentityProvider) -> dict[str, str]:
    return {"authorization": f"Bearer {provider.sign('ana', [])}"}


def test_a_question_its_verdict_and_all_that_goes_by_an_id(
    two: Two, ana: dict[str, str], provider: IdentityProvider
) -> None:
    answered = two.client.post("/query", json=QUESTION, headers=ana)
    assert answered.status_code == 200, answered.text
    answer = answered.json()
    passages = [passage["passage_id"] for passage in answer["passages"]]
    assert "curie" in passages
    assert "hidden" not in passages
    bo = {"authorization": f"Bearer {provider.sign('bo', [])}"}
    seen = two.client.post("/query", json=QUESTION, headers=bo).json()["passages"]
    assert "hidden" in [passage["passage_id"] for passage in seen]

    stored = two.client.get(f"/queries/{answer['query_id']}", headers=ana)
    assert stored.json()["query_id"] == answer["query_id"]
    sentence = answer["passages"][0]["sentences"][0]["sentence_id"]
    verdict = {"query_id": answer["query_id"], "collection": "moved", "supporting": [sentence]}
    accepted = two.client.post("/feedback", json=verdict, headers=ana | {"idempotency-key": "once"})
    assert accepted.status_code == 202, accepted.text
    shown = two.client.get(f"/feedback/{accepted.json()['feedback_id']}", headers=ana)
    assert shown.json()["collection"] == "moved"
    with two.here.database.read() as reader:
        assert reader.scalar("SELECT count(*) FROM feedback_event") == 0
    unknown = two.client.get("/queries/00000000-0000-0000-0000-000000000000", headers=ana)
    assert (unknown.status_code, unknown.json()["type"]) == (404, "urn:engram:problem:not-found")


@dataclass(frozen=True)
class Sent:
    """What is sent, with a long text."""

    path: str
    media_type: str
    body: bytes


TEXT = "Bees fly. " * 49_000
BOUNDARY = "edge"
FORM = (
    f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="metadata"\r\n\r\n'
    '{"knowledge_id": "moved", "file_hash": "0"}'
    f'\r\n--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="bees.txt"\r\n\r\n'
    f"{TEXT}\r\n--{BOUNDARY}--\r\n"
)
PASSAGE = {"id": "bees", "text": TEXT}


@pytest.mark.parametrize(
    "sent",
    [
        Sent("/passages?collection=moved", "application/json", json.dumps({"passages": [PASSAGE]}).encode()),
        Sent("/passages", "application/json", json.dumps({"passages": [PASSAGE], "collection": "moved"}).encode()),
        Sent("/passages?collection=moved", "application/x-ndjson", json.dumps(PASSAGE).encode()),
        Sent("/documents?collection=moved&name=bees.txt", "application/octet-stream", TEXT.encode()),
        Sent("/api/v1/files/", f"multipart/form-data; boundary={BOUNDARY}", FORM.encode()),
    ],
    ids=["JSON", "JSON that names the collection", "NDJSON", "file", "form"],
)
def test_bodies_arrive(two: Two, ana: dict[str, str], sent: Sent) -> None:
    """Over a real socket, in many pieces."""
    with LiveServer(create_app(two.here)) as server:
        answer = httpx.post(
            server.url + sent.path, content=sent.body, headers=ana | {"content-type": sent.media_type}, timeout=60
        )
    assert answer.status_code in {200, 202}, answer.text
    assert two.there.jobs.runner.run_ready() == 1
    job = two.client.get(f"/jobs/{answer.json()['job_id']}", headers=ana).json()
    assert (job["status"], job["collection"]) == ("succeeded", "moved")


def test_a_request_without_a_body(two: Two, ana: dict[str, str]) -> None:
    ingest_passages(two.there, "moved", {"id": "wrong", "text": "Bees swim."})
    assert two.client.delete("/passages/wrong?collection=moved", headers=ana).status_code == 204
    assert two.client.delete("/passages/wrong?collection=moved", headers=ana).status_code == 404


def test_errors_and_other_headers_are_those_of_the_other_api(two: Two, ana: dict[str, str]) -> None:
    missing = two.client.get("/passages/none?collection=moved", headers=ana)
    assert (missing.status_code, missing.headers["content-type"]) == (404, "application/problem+json")
    ours = two.client.post("/query", json=QUESTION, headers=ana | {"x-request-id": "mine"})
    assert ours.headers.get_list("x-request-id") == ["mine"]


def test_access_keys_count_where_they_were_copied_to(two: Two) -> None:
    def ask(name: str) -> int:
        key = keys[name]
        return two.client.post("/query", json=QUESTION, headers={"authorization": f"Bearer {key}"}).status_code

    requests = {name: AccessKeyRequest(name=name, scopes={"*": ["query"]}) for name in ("early", "late")}
    keys = {"early": two.here.auth.access_keys.make(LOCAL, requests["early"]).key}
    mover = move_between(two.here, two.there)
    assert [mover.copy_keys(TENANT), mover.copy_keys(TENANT)] == [1, 0]
    keys["late"] = two.here.auth.access_keys.make(LOCAL, requests["late"]).key
    assert [ask("early"), ask("late")] == [200, 401]
    two.here.auth.access_keys.make(LOCAL, AccessKeyRequest(name="one", judge="human", scopes={"*": ["judge"]}))
    two.there.auth.access_keys.make(LOCAL, AccessKeyRequest(name="two", judge="human", scopes={"*": ["judge"]}))
    with pytest.raises(ConflictError, match="Another principal than 'one' judges as 'human'"):
        mover.copy_keys(TENANT)


def test_several_collections_are_asked_where_all_of_them_live(two: Two, ana: dict[str, str]) -> None:
    ingest_passages(two.there, "beside", *CURIE[:2])
    apart = two.client.post("/query", json=QUESTION | {"collections": ["moved", "stays"]}, headers=ana)
    assert apart.status_code == 422
    assert apart.json()["detail"] == "These collections live in different databases: ask them one by one."
    forward(two.here.database, "beside", TENANT, two.url)
    together = {"query": QUESTION["query"], "collections": ["moved", "beside"]}
    joined = two.client.post("/query", json=together, headers=ana)
    assert joined.status_code == 200, joined.text
    assert {passage["collection"] for passage in joined.json()["passages"]} == {"moved", "beside"}
    assert two.client.post("/query", json=QUESTION | {"collection": "stays"}, headers=ana).status_code == 200


def test_collections_are_listed_page_by_page(two: Two, ana: dict[str, str]) -> None:
    names, after = [], None
    while True:
        page = two.client.get(
            "/collections", params={"limit": 1, **({"after": after} if after else {})}, headers=ana
        ).json()
        names += [one["name"] for one in page["collections"]]
        if (after := page["next_after"]) is None:
            break
    assert {"moved", "stays"} <= set(names)
    assert names == sorted(set(names))
    moved = two.client.get("/collections", params={"after": "move", "limit": 1}, headers=ana).json()["collections"]
    assert moved == [two.client.get("/collections/moved", headers=ana).json()]


def test_whoever_logged_in_in_a_browser(two: Two, provider: IdentityProvider) -> None:
    provider.person = "ana"
    with TestClient(create_app(two.here), follow_redirects=False) as browser:
        browser.get(ask_provider(browser))
        asked = browser.post("/query", json=QUESTION, headers={PAGE_HEADER: "1"})
        assert asked.status_code == 200, asked.text
        assert "hidden" not in [passage["passage_id"] for passage in asked.json()["passages"]]


def test_what_is_not_sent_on(two: Two, ana: dict[str, str]) -> None:
    """Who was sent on already; and a person named by a header, whom the other API would not know."""
    again = two.client.post("/query", json=QUESTION, headers=ana | {"x-engram-forwarded": "1"})
    assert (again.status_code, again.json()["moved_to"]) == (421, two.url)
    believed = TestClient(create_app(two.here), client=("192.0.2.1", 50_000))
    assert believed.post("/query", json=QUESTION, headers=ana | PERSON).status_code in {403, 421}


def test_no_key_of_the_other_api_and_an_api_that_is_away(two: Two, ana: dict[str, str]) -> None:
    with LiveServer(create_app(two.there)) as server:
        forward(two.here.database, "away", TENANT, server.url)
    listed = two.client.get("/collections", headers=ana).json()
    assert ({"moved", "stays"} <= {one["name"] for one in listed["collections"]}, listed["out_of_reach"]) == (
        True,
        ["away"],
    )
    away = two.client.get("/collections/away", headers=ana)
    assert (away.status_code, away.headers["retry-after"]) == (503, "5")
    assert "out of reach" in away.json()["detail"]
    stop_forwarding(two.here.database, "away", TENANT)
    assert two.client.get("/collections/away", headers=ana).status_code == 404


@pytest.mark.parametrize(
    "address",
    [
        "b.example",
        "ftp://b.example",
        "http://b.example",
        "https://b.example?x=1",
        "https://me@b.example",
        "https://",
    ],
)
def test_addresses_to_which_no_key_may_go(address: str) -> None:
    with pytest.raises(ConfigurationError, match="no address to forward to"):
        check_address(address)


def test_what_lives_here_is_not_forwarded(two: Two) -> None:
    with pytest.raises(ConflictError, match="lives in"):
        forward(two.here.database, "stays", TENANT, two.url)
    with pytest.raises(NotFoundError, match="No collection 'stays' lives in another database"):
        stop_forwarding(two.here.database, "stays", TENANT)


def test_commands(two: Two, cli: Cli) -> None:
    servers = two.here.addresses
    env = {"DATABASE_URL": servers.database_url, "REDIS_URL": servers.redis_url}
    told = cli("collection", "forward", "-c", "else", "--to", two.url, **env)
    assert (told.returncode, told.stdout) == (0, f"else: forwarded to {two.url}\n"), told.stderr
    assert cli("collection", "forward", "-c", "else", "--stop", **env).stdout == "else: forwarded no more\n"
    refused = cli("collection", "forward", "-c", "else", **env)
    assert refused.returncode == 2
    assert "Say --to URL or --stop." in refused.stderr
