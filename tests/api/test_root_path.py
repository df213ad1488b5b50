"""The service below a path of a proxy, which removes the path from requests or leaves it there."""

import re
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest
from pydantic import ValidationError

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.runtime.api_process import create_app
from engram_client import Engram
from tests.support.databases import application_on
from tests.support.live_server import LiveServer
from tests.support.strict_client import TestClient

ROOT = "/engram"


@pytest.fixture(scope="module")
def rooted(addresses: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    with application_on(addresses, settings.model_copy(update={"root_path": ROOT}), application) as services:
        yield services


@pytest.fixture(params=[ROOT, ""], ids=["left", "removed"])
def below(rooted: Application, request: pytest.FixtureRequest) -> Iterator[tuple[TestClient, str]]:
    """A client, and what paths begin with when they arrive."""
    with TestClient(create_app(rooted), raise_server_exceptions=False) as client:
        yield client, request.param


def test_routes_answer_and_addresses_lead_below_the_path(below: tuple[TestClient, str]) -> None:
    http, prefix = below
    passages = {"passages": [{"id": "a/b", "text": "Titan has lakes of methane."}]}
    accepted = http.post(f"{prefix}/passages?collection=rooted", json=passages)
    assert accepted.status_code == 202, accepted.text
    assert accepted.headers["location"] == ROOT + accepted.json()["status_url"]
    assert http.get(prefix + accepted.json()["status_url"]).status_code == 200
    missing = http.get(f"{prefix}/passages/a%2Fc?collection=rooted")
    assert (missing.status_code, "a/c" in missing.text) == (404, True), "an encoded slash stays part of the name"
    assert http.get(f"{prefix}/nowhere").status_code == 404
    assert http.get(f"{ROOT}ish/healthz").status_code == 404


def test_pages_load_their_parts_below_the_path(below: tuple[TestClient, str]) -> None:
    http, prefix = below
    assert http.get(f"{prefix}/openapi.json").json()["servers"][0]["url"] == ROOT
    for page in ("/", "/docs"):
        answer = http.get(prefix + page)
        assert "'self'" in answer.headers["content-security-policy"]
        parts = re.findall(r'(?:src|href)="([^"]+)"', answer.text)
        assert len(parts) >= 3
        for part in parts:
            address = urljoin(f"https://example.org{ROOT}{page}", part).removeprefix("https://example.org")
            assert address.startswith(f"{ROOT}/"), "a browser asks the proxy below the path"
            assert http.get(prefix + address.removeprefix(ROOT)).status_code == 200, part


def test_the_client_works_below_the_path(rooted: Application) -> None:
    with LiveServer(create_app(rooted)) as server, Engram(f"{server.url}{ROOT}/", collection="below") as engram:
        job = engram.ingest([{"id": "titan", "text": "Titan has lakes of methane."}])
        rooted.jobs.runner.run_ready()
        assert engram.wait(job).status == "succeeded"
        assert engram.query("Which moon has lakes?").passages[0].passage_id == "titan"


@pytest.mark.parametrize("path", ["engram", "/engram/", "/a b", "//engram", "/"])
def test_a_bad_path_is_refused(path: str) -> None:
    with pytest.raises(ValidationError, match="root_path"):
        Settings(_env_file=None, root_path=path)
