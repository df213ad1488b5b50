"""Wings: which are on, what a wing of one's own takes, and what is left where all are off."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from fastapi import APIRouter

from engram.api.dependencies import App, needs
from engram.api.operations import operation
from engram.composition.container import Application, Servers
from engram.composition.wings import Flow, Wing, WingRoutes, choose_wings, list_installed_wings
from engram.config.settings import Settings
from engram.context.errors import ConfigurationError
from engram.core.auth.access_keys import READ
from engram.runtime.api_process import create_app
from tests.api.conftest import Variant
from tests.api.operations import assert_problem
from tests.support.strict_client import TestClient


@dataclass(frozen=True, eq=False)
class GreetingServices:
    """Services of a wing that greets."""

    tenant: str


router = APIRouter()


@router.get("/greeting", **operation("Greet", needs(READ)))
def get_greeting(app: App) -> dict[str, str]:
    """Greet the tenant."""
    return {"hello": app.wing(GreetingServices).tenant, "collection": "default"}


ROUTES = WingRoutes(
    routers=(router,), links=(Flow(("get_greeting",), {"collection": "/collection"}, ("get_keys",)),)
)
GREETING = Wing(name="greeting", attach=lambda _: GreetingServices("local"), load_routes=lambda: ROUTES)


@pytest.fixture(params=["all", "greeting"])
def greeting(
    request: pytest.FixtureRequest, application: Application, addresses: Servers, settings: Settings
) -> Iterator[Application]:
    """An application with one wing, which is on."""
    made = Application(settings.model_copy(update={"wings": request.param}), addresses, wings=[GREETING])
    made.models.embedder, made.models.language = application.embedder, application.language
    yield made
    made.close()


def test_a_wing_brings_services_and_routes(greeting: Application) -> None:
    http = TestClient(create_app(greeting))
    assert http.get("/greeting").json() == {"hello": "local", "collection": "default"}
    described = http.get("/openapi.json").json()["paths"]
    assert described["/greeting"]["get"]["security"] == [{"accessKey": ["read"]}]
    assert [*described["/greeting"]["get"]["responses"]["200"]["links"]] == ["get_keys"]
    assert "/documents" not in described


def test_a_wing_that_is_off_answers_404_whatever_is_asked(variant: Variant) -> None:
    off = variant(wings="none")
    assert off.wings == {}
    http = TestClient(create_app(off))
    for params in ({}, {"name": "a.txt"}):
        refused = http.post(
            "/documents", params=params, content=b"One.", headers={"content-type": "application/octet-stream"}
        )
        assert_problem(refused)
        assert (refused.status_code, refused.json()["type"]) == (404, "urn:engram:problem:wing-off")
        assert "'importing'" in refused.json()["detail"]
    assert "/documents" in http.get("/openapi.json").json()["paths"]
    assert http.get("/collections").status_code == 200


def test_installed_wings_are_chosen_by_name(variant: Variant) -> None:
    installed = list_installed_wings()
    assert [wing.name for wing in installed] == ["importing"]
    assert choose_wings("all", installed) == choose_wings(" importing ", installed) == list(installed)
    assert choose_wings("none", installed) == []
    for wrong in ("", "imports", "importing,imports"):
        with pytest.raises(ConfigurationError, match="installed are importing"):
            variant(wings=wrong)
