"""Two applications of one database in which passages have readers: one needs keys, the other needs none."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from tests.conftest import Heavy
from tests.support.strict_client import TestClient

SCOPES = ("query", "read", "judge")
Client = Callable[..., TestClient]


@pytest.fixture(scope="module")
def keyed(settings: Settings, own: Servers, heavy: Heavy) -> Iterator[Application]:
    services = Application(settings.model_copy(update={"access": "keys"}), own, consumer="readers")
    services.models.embedder, services.models.language = heavy
    yield services
    services.close()


@pytest.fixture(scope="module")
def client(keyed: Application) -> Client:
    """Makes a client whose key has these principals and scopes."""
    served = create_app(keyed)

    def make(*principals: str, scopes: Sequence[str] | Mapping[str, Sequence[str]] = SCOPES) -> TestClient:
        granted = scopes if isinstance(scopes, Mapping) else {"*": scopes}
        name = f"k{abs(hash((principals, str(granted)))):x}"
        made = keyed.auth.access_keys.make(LOCAL, AccessKeyRequest(name=name, scopes=granted, reads_as=principals))
        headers = {"authorization": f"Bearer {made.key}"}
        return TestClient(served, raise_server_exceptions=False, headers=headers)

    return make


@pytest.fixture(scope="module")
def admin(client: Client) -> TestClient:
    return client(scopes=["admin"])


@pytest.fixture(scope="module")
def local(settings: Settings, own: Servers, keyed: Application) -> Iterator[TestClient]:
    """A client of an application that needs no key."""
    services = Application(settings, own, consumer="readers-local")
    services.models.embedder, services.models.language = keyed.models.embedder, keyed.models.language
    yield TestClient(create_app(services), raise_server_exceptions=False)
    services.close()


Put = Callable[..., None]


@pytest.fixture(scope="module")
def put(keyed: Application, admin: TestClient) -> Put:
    """Ingest passages through the API."""

    def run(collection: str, *passages: Mapping[str, Any]) -> None:
        body = {"collection": collection, "passages": list(passages)}
        accepted = admin.post("/passages", json=body)
        assert accepted.status_code == 202, accepted.text
        keyed.jobs.runner.run_ready()
        job = admin.get(f"/jobs/{accepted.json()['job_id']}", params={"collection": collection}).json()
        assert job["status"] == "succeeded", job

    return run
