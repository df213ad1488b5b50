"""A key that is revoked counts no more in any process at once, where Redis tells of it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from engram.composition.container import Application
from engram.context import tenancy
from engram.context.errors import UnauthorizedError
from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.authentication import Authentication
from engram.services.auth.scope import LOCAL
from engram.storage.auth import access_key_rows
from engram.storage.auth.access_key_rows import StoredKey
from engram.storage.database import Reader
from tests.api.conftest import Variant
from tests.support.constants import ACCESS_CACHE, set_constants
from tests.support.processes import eventually
from tests.support.strict_client import TestClient


@pytest.fixture(autouse=True)
def long_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    set_constants(monkeypatch, {ACCESS_CACHE: 3600.0})


def client(services: Application, key: str) -> TestClient:
    headers = {"authorization": f"Bearer {key}"}
    return TestClient(create_app(services), raise_server_exceptions=False, headers=headers)


@pytest.mark.parametrize("change", ["revoke", "rotate", "close"])
def test_each_process_hears_of_changed_keys(variant: Variant, change: str) -> None:
    here, there, tenant = variant(access="keys"), variant(access="keys"), f"acme-{uuid4().hex}"
    made = here.auth.access_keys.make(LOCAL, AccessKeyRequest(name="alice", scopes={"*": ["admin"]}), tenant)
    with client(here, made.key) as one, client(there, made.key) as other:  # which starts them
        assert [app.get("/access/me").status_code for app in (one, other)] == [200, 200]
        changes: dict[str, Callable[[], object]] = {
            "revoke": lambda: one.delete(f"/access/keys/{made.stored.id}"),
            "rotate": lambda: one.post(f"/access/keys/{made.stored.id}/rotate", json={"grace_seconds": 0}),
            "close": lambda: here.maintenance.closing.close(tenant, tenant),
        }
        changes[change]()
        assert one.get("/access/me").status_code == 401
        # It is remembered for an hour.
        eventually(lambda: other.get("/access/me").status_code == 401, "the end of the key")


def test_whoever_is_not_told_finds_it_out_at_the_next_look_up(application: Application) -> None:
    moment = 0.0
    deaf = Authentication(application.database, needed=True, remember_seconds=3600.0, clock=lambda: moment)
    name = f"bob-{uuid4().hex}"
    made = application.auth.access_keys.make(LOCAL, AccessKeyRequest(name=name, scopes={"*": ["admin"]}))
    header = f"Bearer {made.key}"
    assert deaf.find_principal(header).name == name
    application.auth.access_keys.revoke(LOCAL, made.stored.id)
    assert deaf.find_principal(header).name == name
    moment = 3601.0
    with pytest.raises(UnauthorizedError):
        deaf.find_principal(header)


def test_lookup_overtaken_by_a_revocation_is_not_cached(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    services = variant(access="keys")
    made = services.auth.access_keys.make(
        LOCAL, AccessKeyRequest(name=f"eve-{uuid4().hex}", scopes={"*": ["admin"]})
    )
    find = access_key_rows.find_counting

    def find_overtaken(reader: Reader, digest: bytes) -> StoredKey | None:
        found = find(reader, digest)
        with ThreadPoolExecutor(1) as another:  # which has a connection of its own
            another.submit(tenancy.carry(services.auth.access_keys.revoke), LOCAL, made.stored.id).result()
        return found

    monkeypatch.setattr(access_key_rows, "find_counting", find_overtaken)
    app = client(services, made.key)
    assert app.get("/access/me").status_code == 200  # it came first
    monkeypatch.undo()
    assert app.get("/access/me").status_code == 401
