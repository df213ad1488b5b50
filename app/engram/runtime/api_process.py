"""The API process."""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from engram import __version__
from engram.api import console_files, documentation, error_dialects, problems
from engram.api.auth import login_routes
from engram.api.auth import routes as access
from engram.api.authentication_middleware import AuthenticationMiddleware, is_public
from engram.api.body_limit import BodyLimit
from engram.api.client_presence import ClientPresence
from engram.api.corpus import document_routes, settings_routes
from engram.api.corpus import routes as corpus_routes
from engram.api.corpus.document_schemas import ManifestIn
from engram.api.corpus.schemas import PassagesIn
from engram.api.dependencies import RequiredScope, find_need, require_wing
from engram.api.draining import DrainMiddleware
from engram.api.erasure import routes as erasure_routes
from engram.api.forwarding import Forwarding
from engram.api.jobs import routes as jobs_routes
from engram.api.login_cookies import LoginCookies
from engram.api.maintenance import audit_routes, health_routes, metrics_routes, reembed_routes
from engram.api.openapi_links import FLOWS, link
from engram.api.origin_checks import AllowedOrigins, Origins
from engram.api.person_header import PersonHeader
from engram.api.problem_document import Problem
from engram.api.question import routes as question_routes
from engram.api.refusals import Refusals
from engram.api.request_telemetry import HEADER, TelemetryMiddleware
from engram.api.root_path import RootPathMiddleware
from engram.api.throttle import UNLIMITED_PATHS, Bounds, Throttle
from engram.api.verdict import judge_routes
from engram.api.verdict import routes as verdict_routes
from engram.api.work_threads import WorkThreads
from engram.composition.container import Application
from engram.composition.wings import Wing, list_installed_wings
from engram.config.settings import Settings
from engram.services.auth.failed_attempts import FailedAttempts
from engram.services.auth.rate_limits import Rates

SCHEME = "accessKey"
INGESTING = ("/documents", "/passages", "/api/v1/files/")
"""Routes that take passages, within the quota of passages."""
LARGE_BODIES = re.compile(r"/passages|/documents(:compare)?|/api/v1/(files/|knowledge/[^/]+/sync/(diff|cleanup))")
"""Paths whose routes bound their bodies themselves."""
ROUTERS = tuple(
    module.router
    for module in (
        question_routes,
        verdict_routes,
        judge_routes,
        erasure_routes,
        corpus_routes,
        document_routes,
        jobs_routes,
        settings_routes,
        health_routes,
        metrics_routes,
        audit_routes,
        reembed_routes,
        access,
    )
)
DESCRIPTION = """
Retrieval that learns from being used. Ask `POST /query`, post what really helped to `POST /feedback`, and the
next related question finds its evidence sooner. Errors are RFC 9457 problem documents; any route can answer 500.
"""


def create_app(application: Application | None) -> FastAPI:
    """The HTTP application; without an ``application`` it can only describe itself."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if application is None:
            yield
            return
        await run_in_threadpool(application.startup.warm_up)
        stop = application.auth.follow_changes()
        try:
            yield
        finally:
            await run_in_threadpool(stop)
            await app.state.forwarding.close()

    settings = Settings(_env_file=None) if application is None else application.settings
    app = FastAPI(
        title="Engram",
        version=__version__,
        description=DESCRIPTION.strip(),
        license_info={"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        servers=[{"url": settings.root_path or "/", "description": "The service that this document comes from."}],
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.services = application
    app.state.draining = False
    app.state.answering = WorkThreads("engram-questions", settings.max_concurrent_queries)
    app.add_middleware(ClientPresence)
    app.add_middleware(DrainMiddleware)
    app.add_middleware(BodyLimit, unlimited=LARGE_BODIES)
    refusals = Refusals(settings.max_connections // CONNECTIONS_BY_REFUSAL)
    _throttle(app, settings, None if application is None else application.auth.rates, refusals)
    _authenticate(app, settings, application, refusals)
    problems.install(app)
    for router in (*ROUTERS, documentation.router, console_files.router, login_routes.router):
        app.include_router(router)
    wings = list_installed_wings() if application is None else application.installed_wings
    for wing in wings:
        for router in wing.load_routes().routers:
            app.include_router(router, dependencies=[require_wing(wing.name)])
    app.state.dialects = [dialect for wing in wings for dialect in wing.load_routes().dialects]
    _describe(app, wings)
    _guard(app, settings)
    return app


EACH_ELSEWHERE = 16
"""Requests of one principal that a process has in hand at once, where other machines can reach the API."""
QUEUED_REQUESTS = 400
"""Requests that wait for others to end; one more is answered 503."""
QUEUE_TIMEOUT_SECONDS = 10.0
"""How long they wait before they are answered 503."""
CONNECTIONS_BY_REFUSAL = 4
"""Connections that a process may have for each refusal that it holds back."""


def _throttle(app: FastAPI, settings: Settings, rates: Rates | None, refusals: Refusals) -> None:
    """Put limits around the routes."""
    limit = 0 if settings.on_loopback else EACH_ELSEWHERE
    bounds = Bounds(limit, settings.max_concurrent_requests, QUEUED_REQUESTS, QUEUE_TIMEOUT_SECONDS)
    app.add_middleware(Throttle, bounds=bounds, rates=rates, refusals=refusals)


def _authenticate(app: FastAPI, settings: Settings, application: Application | None, refusals: Refusals) -> None:
    """Put the look for whose each request is around the routes."""
    app.state.failed_attempts = FailedAttempts()
    login = None if application is None else application.auth.login
    person_header = PersonHeader.from_setting(settings.person_header)
    app.state.forwarding = Forwarding(None if person_header is None else person_header.name)
    app.add_middleware(
        AuthenticationMiddleware,
        authentication=None if application is None else application.auth.authentication,
        login_authentication=None if login is None else login.authentication,
        failed_attempts=app.state.failed_attempts,
        refusals=refusals,
        login_cookies=LoginCookies(settings.url),
        person_header=person_header,
    )


def _guard(app: FastAPI, settings: Settings) -> None:
    """Put the check of origins around everything, failures that nobody expected included."""
    allowed = AllowedOrigins.from_settings(settings.host, settings.allowed_hosts, settings.cors_origins)
    if allowed.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=sorted(allowed.origins),
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["authorization", "content-type", "idempotency-key", HEADER],
            expose_headers=["location", "ratelimit", "ratelimit-policy", "retry-after", HEADER],
        )
    build = app.build_middleware_stack

    def build_guarded() -> ASGIApp:
        guarded = TelemetryMiddleware(Origins(build(), allowed))
        return RootPathMiddleware(guarded, settings.root_path) if settings.root_path else guarded

    app.build_middleware_stack = build_guarded  # type: ignore[method-assign]


def _place(path: str, parameter: dict[str, Any]) -> tuple[int, bool]:
    """Return a parameter's place: those of the path in its order, then the collection, which FastAPI puts last."""
    inside = path.find(f"{{{parameter['name']}}}") if parameter["in"] == "path" else len(path)
    return inside, parameter["name"] != "collection"


def _add_security(document: dict[str, Any], routers: Sequence[APIRouter]) -> None:
    """Add what each route takes: an access key, where one is needed, with which scope."""
    document["components"]["securitySchemes"] = {
        SCHEME: {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "engram_...",
            "description": "An access key. On loopback none is needed, unless the service is told so.",
        }
    }
    for path, operations in document["paths"].items():
        for operation in operations.values():  # of those below that say no scope, only the public ones take no key
            operation["security"] = [] if is_public(path) else [{SCHEME: []}]
    for route, need in list_required_scopes(routers):
        for method in route.methods or ():
            operation = document["paths"][route.path_format][method.lower()]
            operation["security"] = [{SCHEME: [need.scope]}]
            operation["description"] = f"{operation.get('description', '')}\n\nScope: `{need.scope}`.".strip()
            refused = (401, 403, 429) if need.takes or route.path in INGESTING else (401, 403)
            operation["responses"] |= {str(code): of for code, of in problems.responses(*refused).items()}


def list_routers(wings: Sequence[Wing]) -> list[APIRouter]:
    """List the routers of the core and of these wings."""
    return [*ROUTERS, *(router for wing in wings for router in wing.load_routes().routers)]


def list_required_scopes(routers: Sequence[APIRouter]) -> Iterator[tuple[APIRoute, RequiredScope]]:
    """Routes that need a scope, and what each needs."""
    for route in (route for router in routers for route in router.routes):
        if isinstance(route, APIRoute) and (need := find_need(route.dependencies)) is not None:
            yield route, need


def _describe(app: FastAPI, wings: Sequence[Wing]) -> None:
    """Add to the generated OpenAPI what routes that read the body themselves cannot say."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if not app.openapi_schema:
            document = generate()
            schemas = document["components"]["schemas"]
            template = "#/components/schemas/{model}"
            problems_of_dialects = (dialect.problem for dialect in app.state.dialects)
            of_wings = [wing.load_routes() for wing in wings]
            bodies = (model for routes in of_wings for model in routes.bodies)
            for model in (PassagesIn, ManifestIn, Problem, *problems_of_dialects, *bodies):
                described = model.model_json_schema(ref_template=template)
                schemas.update(described.pop("$defs", {}))
                schemas[model.__name__] = described
            _add_security(document, list_routers(wings))
            for path, operations in document["paths"].items():
                for operation in operations.values():
                    if path not in UNLIMITED_PATHS:
                        operation["responses"] |= {str(code): of for code, of in problems.responses(429).items()}
                    operation.get("parameters", []).sort(key=partial(_place, path))
            error_dialects.describe(document, app.state.dialects)
            flows = [*FLOWS, *(flow for routes in of_wings for flow in routes.links)]
            link(document, flows, [name for routes in of_wings for name in routes.takes_collection])
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign] # FastAPI documents replacing it this way
