"""Access: every route with every scope, other tenants, and keys that do not count (any more)."""

from collections.abc import Callable
from typing import Any

import pytest

from engram.api.authentication_middleware import is_public
from engram.api.dependencies import RequiredScope
from engram.composition.container import Application
from engram.composition.wings import list_installed_wings
from engram.context.errors import ConfigurationError
from engram.core.auth.access_keys import ADMIN, SCOPES, build_key
from engram.runtime.api_process import create_app, list_required_scopes, list_routers
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.authentication import Authentication
from engram.services.auth.scope import LOCAL
from tests.api.conftest import Variant
from tests.api.operations import (
    DIFY,
    DOCUMENT,
    MAKING,
    OPERATIONS,
    STORES,
    WALKED,
    WORDED,
    assert_problem,
    url,
    well_formed,
)
from tests.support.constants import ACCESS_CACHE, set_constants
from tests.support.processes import eventually
from tests.support.statements import record_statements
from tests.support.strict_client import TestClient

KeyedClient = Callable[..., TestClient]
OWN_PATHS = {"/access/me", "/access/quotas"}
NEEDED: dict[tuple[str, str], RequiredScope] = {
    (method, route.path_format): need
    for route, need in list_required_scopes(list_routers(list_installed_wings()))
    for method in route.methods or ()
    if (method, route.path_format) in OPERATIONS
}
WALKED_NEEDS = {operation: need for operation, need in NEEDED.items() if operation in WALKED}
REMEMBERED_SECONDS = 0.3


@pytest.fixture
def guarded(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> Application:
    """The application, needing keys."""
    set_constants(monkeypatch, {ACCESS_CACHE: REMEMBERED_SECONDS})
    return variant(access="keys")


@pytest.fixture
def keyed(guarded: Application) -> KeyedClient:
    """Clients with keys of their own: ``keyed(name, {"docs": ["read"]}, tenant=...)``."""
    app = create_app(guarded)

    def client(
        name: str = "ada", scopes: dict[str, list[str]] | None = None, tenant: str = "local", **more: Any
    ) -> TestClient:
        wanted = AccessKeyRequest(name=name, scopes=scopes or {"*": ["admin"]}, **more)
        made = guarded.auth.access_keys.make(LOCAL, wanted, tenant)
        found = TestClient(app, raise_server_exceptions=False, headers={"authorization": f"Bearer {made.key}"})
        found.headers["x-key-id"] = str(made.stored.id)
        return found

    return client


def assert_ends(client: TestClient) -> None:
    """The key counts no more before long."""
    eventually(lambda: client.get("/collections").status_code != 200, "the end of the key")
    assert client.get("/collections").status_code == 401


@pytest.mark.routes
def test_every_route_says_what_it_takes_and_so_does_the_document() -> None:
    assert set(OPERATIONS) - NEEDED.keys() == {
        (method, path) for method, path in OPERATIONS if is_public(path) or path in OWN_PATHS
    }
    assert {need.scope for need in NEEDED.values()} == set(SCOPES) - {"vouch", "llm", "act-as", "judge-as"}
    for (method, path), need in NEEDED.items():
        operation = DOCUMENT["paths"][path][method.lower()]
        assert operation["security"] == [{"accessKey": [need.scope]}]
        refused = {"403"} if path == DIFY else {"401", "403"}
        assert operation["responses"].keys() & {"401", "403"} == refused
    assert DOCUMENT["components"]["securitySchemes"]["accessKey"]["scheme"] == "bearer"


@pytest.mark.routes
def test_every_route_lets_its_scope_in_and_no_other(guarded: Application, keyed: KeyedClient, curie: str) -> None:
    for at, scope in enumerate(SCOPES):
        client = keyed(f"{scope}-only", {curie: [scope]})
        for number, ((method, path), need) in enumerate(WALKED_NEEDS.items()):
            if scope not in {need.scope, ADMIN} and (at + number) % 3:
                continue  # each route refuses a third of the other scopes, and each scope is refused by many
            target = url(path.replace("{name}", curie))
            if (method, path) == ("DELETE", "/collections/{name}") and scope == ADMIN:
                continue
            answer = client.request(method, target, **well_formed(method, path, curie))
            if scope in {need.scope, ADMIN} and not need.everywhere:
                assert answer.status_code not in {401, 403}, (scope, method, path, answer.text)
            else:
                assert answer.status_code == 403, (scope, method, path, answer.text)
                assert answer.json()["scope"] == need.scope
                assert_problem(answer)
    assert keyed("owner").delete(f"/collections/{curie}").status_code == 204


@pytest.mark.routes
def test_key_of_another_tenant_sees_no_collection(keyed: KeyedClient, curie: str) -> None:
    own = keyed()
    stranger = keyed("eve", {"*": ["admin"]}, tenant=f"tenant-{curie}")
    asked = own.post("/query", json={"query": "Where was Marie Curie born?", "collection": curie}).json()
    assert asked["passages"]
    for method, path in WALKED_NEEDS:
        if (
            path.startswith("/access")
            or path in {"/collections", "/documents", "/passages", "/queries:batch", "/audit", "/v1/models", STORES}
            or path in WORDED | MAKING
        ):
            continue  # of its own tenant; an answer needs an endpoint first
        target = url(path.replace("{name}", curie).replace("{query_id}", asked["query_id"]))
        answer = stranger.request(method, target, **well_formed(method, path, curie))
        unknown = stranger.request(method, url(path), **well_formed(method, path, "no-such-collection"))
        assert answer.status_code == unknown.status_code == 404, (method, path, answer.text)
        assert answer.json()["detail"] == unknown.json()["detail"].replace("no-such-collection", curie)
    alone = f"/queries/{asked['query_id']}"
    assert [client.get(alone).status_code for client in (own, stranger)] == [200, 404]
    one = {"query": "Where was Marie Curie born?", "collection": curie}
    (answered,) = stranger.post("/queries:batch", json={"queries": [one]}).json()["answers"]
    assert (answered["answer"], answered["problem"]["status"]) == (None, 404)
    assert stranger.get("/collections").json()["collections"] == []
    assert [client.get("/metrics").status_code for client in (own, stranger)] == [200, 403]
    assert stranger.get("/access/keys").json()["keys"][0]["name"] == "eve"
    assert {act["principal"] for act in stranger.get("/audit").json()["entries"]} <= {"eve"}
    assert stranger.delete(f"/access/keys/{own.headers['x-key-id']}").status_code == 404
    assert own.get(f"/collections/{curie}").json()["passage_count"] == 5


def test_a_collection_without_any_right_is_as_if_it_were_not_there(keyed: KeyedClient, curie: str) -> None:
    client = keyed("bob", {"elsewhere": ["admin"]})
    answer = client.get(f"/collections/{curie}")
    assert (answer.status_code, answer.json()["detail"]) == (404, f"There is no collection {curie!r}.")
    assert client.post("/passages", params={"collection": curie}, json={"passages": []}).status_code == 404
    listed = client.get("/collections").json()["collections"]
    assert curie not in {row["name"] for row in listed}


def test_two_tenants_have_collections_of_one_name(keyed: KeyedClient, curie: str) -> None:
    stranger = keyed("eve", {"*": ["admin"]}, tenant=f"tenant-{curie}")
    body = {"passages": [{"id": "a", "text": "The Thames flows through London."}]}
    assert stranger.post("/passages", params={"collection": curie}, json=body).status_code == 202
    assert stranger.get(f"/collections/{curie}").json()["passage_count"] == 0
    assert keyed().get(f"/collections/{curie}").json()["passage_count"] == 5


def test_queries_and_verdicts_are_their_principals_own(keyed: KeyedClient, curie: str) -> None:
    one, two = (keyed(name, {curie: ["query", "judge", "read"]}) for name in ("one", "two"))
    auditor = keyed("auditor", {curie: ["query", "judge", "audit"]})
    asked = one.post("/query", json={"query": "Where was Marie Curie born?", "collection": curie}).json()
    seen = f"/queries/{asked['query_id']}"
    where = {"collection": curie}
    assert [client.get(seen, params=where).status_code for client in (one, two, auditor)] == [200, 404, 200]
    assert [client.get(seen).status_code for client in (one, two, auditor)] == [200, 404, 200]
    assert keyed("nowhere", {"elsewhere": ["admin"]}).get(seen).status_code == 404
    assert keyed("reader", {curie: ["read"], "elsewhere": ["query"]}).get(seen).status_code == 403

    verdict = {"query_id": asked["query_id"], "collection": curie}
    given = one.post("/feedback", json=verdict, headers={"idempotency-key": "own"}).json()
    assert given["judge"] == "one"
    path = f"/feedback/{given['feedback_id']}"
    assert [client.get(path, params=where).status_code for client in (one, two, auditor)] == [200, 404, 200]
    lists = [len(client.get("/feedback", params=where).json()["feedback"]) for client in (one, two, auditor)]
    assert lists == [1, 0, 1]
    assert [client.delete(path, params=where).status_code for client in (two, auditor, one)] == [404, 403, 200]


def test_trace_hides_questions_of_others(keyed: KeyedClient, curie: str) -> None:
    one, auditor = keyed("asker", {curie: ["query", "judge"]}), keyed("judge", {curie: ["query", "judge", "audit"]})
    body = {"query": "Where was Marie Curie born?", "collection": curie, "include": ["trace", "sentences"]}
    asked = auditor.post("/query", json=body).json()
    helped = [asked["passages"][0]["sentences"][0]["sentence_id"]]
    verdict = {"query_id": asked["query_id"], "collection": curie, "supporting": helped, "wait": True}
    auditor.post("/feedback", json=verdict, headers={"idempotency-key": "traced"}).raise_for_status()
    seen = {}
    for name, client in (("one", one), ("auditor", auditor)):
        again = client.post("/query", json=body).json()
        read = client.get(f"/queries/{again['query_id']}", params={"collection": curie}).json()
        assert again["trace"]["recalled"] == read["trace"]["recalled"]
        seen[name] = [past["past_question"] for past in again["trace"]["recalled"]]
    assert seen == {"one": [None], "auditor": ["Where was Marie Curie born?"]}


def test_a_key_judges_under_its_own_name(keyed: KeyedClient, curie: str) -> None:
    plain = keyed("plain", {curie: ["query", "judge"]}, judge="Editor")
    chief = keyed("chief", {curie: ["query", "judge", "judge-as", "vouch"]})
    asked = plain.post("/query", json={"query": "Where was Marie Curie born?", "collection": curie}).json()

    def post_verdict(client: TestClient, key: str, **more: Any) -> Any:
        body = {"query_id": asked["query_id"], "collection": curie} | more
        return client.post("/feedback", json=body, headers={"idempotency-key": key})

    assert post_verdict(plain, "a").json()["judge"] == "editor"
    assert post_verdict(plain, "b", judge="EDITOR ").json()["judge"] == "editor"
    refused = post_verdict(plain, "c", judge="chief")
    assert (refused.status_code, refused.json()["scope"]) == (403, "judge-as")
    assert post_verdict(chief, "d", judge="crowd").json()["judge"] == "crowd"
    assert post_verdict(plain, "e", retrieval_success=True).status_code == 403
    assert post_verdict(plain, "f", generation_success=True).status_code == 403
    assert post_verdict(plain, "g", retrieval_success=False).status_code == 202
    assert post_verdict(chief, "h", retrieval_success=True).status_code == 202
    assert post_verdict(plain, "i", judge="еditor").status_code == 422


def test_keys_that_do_not_count(guarded: Application, keyed: KeyedClient, curie: str) -> None:
    anonymous = TestClient(create_app(guarded), raise_server_exceptions=False)
    for header in (None, "Basic YTpi", "Bearer", "Bearer engram_x", f"Bearer {build_key(bytes(32))}"):
        answer = anonymous.get("/collections", headers={} if header is None else {"authorization": header})
        assert_problem(answer)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    for path in ("/healthz", "/readyz", "/openapi.json", "/docs"):
        assert anonymous.get(path).status_code == 200, path
    assert anonymous.get("/no-such-path").status_code == 401

    short = keyed("short", {"*": ["read"]}, days=1)
    with guarded.database.write() as writer:
        writer.execute(
            "UPDATE access_key SET expires_at = now() WHERE id = %(id)s", {"id": int(short.headers["x-key-id"])}
        )
    assert short.get("/collections").status_code == 401


def test_a_revoked_key_is_noticed_and_a_rotated_one_followed(keyed: KeyedClient, guarded: Application) -> None:
    owner, client = keyed("owner"), keyed("reader", {"*": ["read"]})
    key_id = client.headers["x-key-id"]
    made = owner.post(f"/access/keys/{key_id}/rotate", json={"grace_seconds": 3_600}).json()
    assert made["key"].startswith("engram_")
    follower = TestClient(create_app(guarded), headers={"authorization": f"Bearer {made['key']}"})
    assert follower.get("/access/me").json()["scopes"] == {"*": ["read"]}
    assert client.get("/collections").status_code == 200, "for as long as it is given"

    assert owner.delete(f"/access/keys/{key_id}").json()["revoked_at"] is not None
    assert_ends(client)
    listed = owner.get("/access/keys", params={"limit": 1000}).json()["keys"]
    assert not any("key" in row or made["key"] in str(row) for row in listed)
    assert owner.post(f"/access/keys/{key_id}/rotate", json={}).status_code == 409


def test_reserved_name_local_is_refused_for_a_key(keyed: KeyedClient) -> None:
    answer = keyed("owner").post("/access/keys", json={"name": "Local", "scopes": {"*": ["read"]}})
    assert (answer.status_code, "needs no key" in answer.json()["detail"]) == (422, True)


def test_a_key_makes_none_that_allows_more(keyed: KeyedClient, curie: str) -> None:
    owner = keyed("owner")
    assert owner.post("/access/keys", json={"name": "sub", "scopes": {curie: ["query"]}}).status_code == 201
    more = {"name": "more", "scopes": {"*": ["query"]}, "trusted": True}
    assert owner.post("/access/keys", json=more).status_code == 403
    taken = {"name": "other", "scopes": {curie: ["judge"]}, "judge": "Sub"}
    assert owner.post("/access/keys", json=taken).status_code == 409
    assert owner.post("/access/keys", json={"name": "x", "scopes": {curie: ["write"]}}).status_code == 422


def test_a_key_is_looked_up_once_in_a_while(guarded: Application, keyed: KeyedClient) -> None:
    now = 100.0
    authentication = Authentication(guarded.database, needed=True, remember_seconds=60.0, clock=lambda: now)
    header = keyed("often", {"*": ["read"]}).headers["authorization"]

    def statements() -> int:
        with record_statements() as sent:
            for _ in range(5):
                assert authentication.find_principal(header).name == "often"
        return sent.statements

    assert statements() == 1
    assert statements() == 0
    now += 60.0
    assert statements() == 1


def test_key_restricts_its_bearer_where_none_is_needed(
    http: TestClient, application: Application, curie: str
) -> None:
    made = application.auth.access_keys.make(LOCAL, AccessKeyRequest(name="reader", scopes={curie: ["read"]}))
    named = {"authorization": f"Bearer {made.key}"}
    assert http.get("/access/me").json()["name"] == "local"
    assert http.get("/access/me", headers=named).json()["name"] == "reader"
    assert http.delete(f"/collections/{curie}", headers=named).status_code == 403
    assert http.get("/access/me", headers={"authorization": "Basic YTpi"}).json()["name"] == "local"


def test_reachable_api_needs_a_key_or_explicit_open_access(
    variant: Variant, monkeypatch: pytest.MonkeyPatch, application: Application
) -> None:
    application.auth.access_keys.make(LOCAL, AccessKeyRequest(name="first", scopes={"*": ["admin"]}))
    elsewhere = variant(host="0.0.0.0")
    assert elsewhere.auth.authentication.needed
    elsewhere.auth.check()
    monkeypatch.setattr("engram.storage.auth.access_key_rows.has_counting_key", lambda _: False)
    with pytest.raises(ConfigurationError, match="engram access create-key NAME"):
        elsewhere.auth.check()
    for told, needed_there in (("keys", True), ("open", False)):
        built = variant(host="0.0.0.0", access=told)
        built.auth.check()
        assert built.auth.authentication.needed is needed_there
    here = variant()
    here.auth.check()
    assert not here.auth.authentication.needed
