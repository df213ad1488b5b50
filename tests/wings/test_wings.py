"""Wings: which are on, what a wing of one's own takes, and what is left where all are off."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import pytest
from fastapi import APIRouter
from numpy.typing import NDArray

from engram.api.dependencies import App, needs
from engram.api.operations import operation
from engram.api.problem_document import Problem
from engram.composition.container import Application, Servers
from engram.composition.wings import Dialect, Flow, Wing, WingRoutes, choose_wings, list_installed_wings
from engram.config.settings import Settings
from engram.context.errors import ConfigurationError
from engram.core.auth.access_keys import READ
from engram.runtime.api_process import create_app, list_required_scopes
from engram.services.question.plan import QueryPlan
from engram.services.question.query import Query
from engram.services.question.ranking import PassageRanking
from engram.services.question.shown import ShownPassages
from engram.storage.corpus.collections import Collection
from engram.storage.database import Reader
from tests.api.conftest import Variant
from tests.api.operations import assert_problem, url
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


class GreetingProblem(Problem):
    """An error as a greeter reads it."""

    pardon: str


POLITE = Dialect(
    reads=lambda path: path == "/greeting",
    problem=GreetingProblem,
    build_members=lambda _request, status, kind, detail: {"pardon": f"{kind} {status}: {detail}"},
    statuses={405: 400},
)
ROUTES = WingRoutes(
    routers=(router,),
    links=(Flow(("get_greeting",), {"collection": "/collection"}, ("get_jobs",)),),
    dialects=(POLITE,),
)
GREETING = Wing(name="greeting", attach=lambda _: GreetingServices("local"), load_routes=lambda: ROUTES)


@pytest.fixture(params=["all", "greeting"])
def greeting(
    request: pytest.FixtureRequest, application: Application, addresses: Servers, settings: Settings
) -> Iterator[Application]:
    """An application with one wing, which is on."""
    made = Application(settings.model_copy(update={"wings": request.param}), addresses, wings=[GREETING])
    made.models.embedder, made.models.language = application.models.embedder, application.models.language
    yield made
    made.close()


def test_a_wing_brings_services_and_routes(greeting: Application) -> None:
    http = TestClient(create_app(greeting))
    assert http.get("/greeting").json() == {"hello": "local", "collection": "default"}
    described = http.get("/openapi.json").json()["paths"]
    assert described["/greeting"]["get"]["security"] == [{"accessKey": ["read"]}]
    assert [*described["/greeting"]["get"]["responses"]["200"]["links"]] == ["get_jobs"]
    assert "post" not in described["/documents"]


@dataclass(frozen=True)
class SigningRule:
    """A rule that signs questions. Rule "a" shows the last passage first, each other one only the first."""

    signature: str

    def prepare(self, query: Query) -> Query:
        return replace(query, trace_id=f"{query.trace_id}{self.signature}")

    def choose(
        self, reader: Reader, plan: QueryPlan, ranking: PassageRanking, shown: ShownPassages
    ) -> ShownPassages:
        if self.signature == "a":
            return replace(shown, best=[*reversed(shown.best)])
        return replace(shown, best=shown.best[:1])


def test_rules_of_wings_change_questions_and_answers_in_order(
    application: Application, addresses: Servers, settings: Settings, curie: str
) -> None:
    wings = [Wing(name=name, attach=lambda _: None, question_rule=SigningRule(name)) for name in "ab"]
    with closing(Application(settings, addresses, wings=wings)) as ruled:
        ruled.models.embedder, ruled.models.language = application.models.embedder, application.models.language
        query = Query(
            text="Where was Marie Curie born?", scope=ruled.auth.access.scope(curie), top_k=3, trace_id="t"
        )
        answer = ruled.answers.question.serve(query)
        assert answer.trace_id == "tab"
        plain = application.answers.question.serve(query)
        assert [hit.passage_id for hit in answer.passages] == [plain.passages[-1].passage_id]
        withheld = ruled.answers.question.serve(replace(query, min_sufficiency=1.0))
        assert (withheld.insufficient, withheld.passages) == (True, [])


def test_a_wing_that_is_off_answers_404_whatever_is_asked(variant: Variant) -> None:
    off = variant(wings="none")
    assert off.wing_services == {}
    http = TestClient(create_app(off))
    for params in ({}, {"name": "a.txt"}):
        refused = http.post(
            "/documents", params=params, content=b"One.", headers={"content-type": "application/octet-stream"}
        )
        assert_problem(refused)
        assert (refused.status_code, refused.json()["type"]) == (404, "urn:engram:problem:wing-off")
        assert "'importing'" in refused.json()["detail"]
    assert "post" in http.get("/openapi.json").json()["paths"]["/documents"]
    assert http.get("/collections").status_code == 200


def test_every_route_of_a_wing_that_is_off_is_refused(variant: Variant) -> None:
    http = TestClient(create_app(variant(wings="none")))
    for wing in list_installed_wings():
        for route, _ in list_required_scopes(wing.load_routes().routers):
            for method in route.methods:
                refused = http.request(method, url(route.path_format))
                assert_problem(refused)
                assert refused.json()["type"] == "urn:engram:problem:wing-off", (method, route.path)
                assert repr(wing.name) in refused.json()["detail"]


def test_a_wing_brings_a_dialect_of_errors(greeting: Application) -> None:
    http = TestClient(create_app(greeting))
    refused = http.post("/greeting")
    assert (refused.status_code, refused.json()["status"]) == (400, 400)
    assert refused.json()["pardon"] == "method-not-allowed 405: Method Not Allowed"
    assert "pardon" not in http.post("/collections").json()
    described = http.get("/openapi.json").json()
    for path, schema in {"/greeting": "GreetingProblem", "/collections": "Problem"}.items():
        (content,) = described["paths"][path]["get"]["responses"]["503"]["content"].values()
        assert content["schema"] == {"$ref": f"#/components/schemas/{schema}"}
    assert "pardon" in described["components"]["schemas"]["GreetingProblem"]["required"]


def test_installed_wings_are_chosen_by_name(variant: Variant) -> None:
    installed = list_installed_wings()
    assert [wing.name for wing in installed] == [
        "experiments",
        "facts",
        "frontends",
        "history",
        "importing",
        "local",
        "published",
        "sessions",
        "tuning",
        "upkeep",
        "why",
        "agent",
    ]
    assert choose_wings("all", installed) == choose_wings(
        "importing,frontends, experiments,agent,upkeep,sessions,tuning,facts,local,history,published,why", installed
    )
    assert choose_wings("all", installed) == list(installed)
    assert [wing.name for wing in choose_wings(" importing ", installed)] == ["importing"]
    with pytest.raises(ConfigurationError, match="the wing 'agent' needs 'sessions'"):
        choose_wings("agent, facts", installed)
    assert choose_wings("none", installed) == []
    for wrong in ("", "imports", "importing,imports"):
        with pytest.raises(ConfigurationError, match="installed are experiments, facts, frontends"):
            variant(wings=wrong)


@dataclass(frozen=True)
class OtherQuestion:
    """Embeds another question in place of each; none where it has no words."""

    application: Application
    words: str

    def find_generation(self, collection_id: int) -> int:
        return 0

    def embed(self, collection: Collection, generation: int, texts: Sequence[str]) -> NDArray[np.float32] | None:
        encoder = self.application.models.encoder
        return encoder.embed_questions(collection, [self.words] * len(texts)) if self.words else None


@pytest.mark.parametrize("words", ["", "Who built the observatory?"])
def test_a_question_encoder_of_a_wing_is_compared_with_passages_alone(
    application: Application, addresses: Servers, settings: Settings, curie: str, words: str
) -> None:
    wing = Wing(name="taught", attach=lambda _: None, make_question_encoder=lambda made: OtherQuestion(made, words))
    with closing(Application(settings, addresses, wings=[wing])) as taught:
        taught.models.embedder, taught.models.language = application.models.embedder, application.models.language
        query = Query(text="Where was Marie Curie born?", scope=taught.auth.access.scope(curie), strategy="hybrid")
        focus = taught.retrieval.planner.plan(query).focus
        own, other = taught.models.encoder.embed_questions(
            query.scope.collection, [query.text, "Who built the observatory?"]
        )
    np.testing.assert_allclose(focus.vector, own, atol=1e-5)
    assert (focus.key_vector is None) == (not words)
    if focus.key_vector is not None:
        np.testing.assert_allclose(focus.key_vector, other, atol=1e-5)
