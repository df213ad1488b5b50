"""Dependencies of routes: the application, and checked parts of requests.

What only looks at the request is ``async``: FastAPI sends any other function through a thread of its pool, which
costs many times the function. It also solves a dependency's own dependencies each time, so what many requests go
through takes the request alone.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, Protocol, TypeVar, cast
from uuid import UUID

from fastapi import Depends, Header, Path, Query, Request, params
from starlette.concurrency import run_in_threadpool

from engram.api.authentication_middleware import PRINCIPAL
from engram.api.client_presence import CLIENT_LEFT
from engram.api.request_principal import holder
from engram.api.schemas import DEFAULT_COLLECTION, MAX_ID, CollectionName
from engram.api.throttle import REQUEST_RATE, RequestRate
from engram.api.work_threads import RequestThreads, WorkThreads
from engram.composition.container import Application
from engram.context import deadline, tenancy
from engram.context.errors import ForbiddenError, MalformedRequestError, UnsupportedMediaTypeError, WingOffError
from engram.core.auth.access_keys import ADMIN, ANY_COLLECTION, INGEST, MODERATE
from engram.core.text.trace_parent import trace_id
from engram.providers.llm import token_meter
from engram.services.auth.quotas import QuotaKind
from engram.services.auth.scope import (
    JOB,
    LOCAL,
    QUERY,
    VERDICT,
    AccessService,
    CollectionOpening,
    Principal,
    ResourceKind,
    Scope,
)


async def _services(request: Request) -> Application:
    services: Application = request.app.state.services
    return services


async def json_body(request: Request) -> None:
    """Refuse a body that is not JSON.

    Raises:
        UnsupportedMediaTypeError: the content type is another one.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json" and not media_type.endswith("+json"):
        raise UnsupportedMediaTypeError("This route reads application/json.")


KEY: dict[str, Any] = {"max_length": 200, "json_schema_extra": {"minLength": 1, "pattern": "^[!-~]+$"}}


async def _require_key(
    idempotency_key: Annotated[
        str, Header(description="Yours, unique per verdict; the same request again is answered alike.", **KEY)
    ],
) -> str:
    return _check_key(idempotency_key)


async def _read_optional_key(
    idempotency_key: Annotated[
        str | None, Header(description="The same request again is answered alike.", **KEY)
    ] = None,
) -> str | None:
    return None if idempotency_key is None else _check_key(idempotency_key)


def _check_key(key: str) -> str:
    if not key or not all("!" <= character <= "~" for character in key):
        raise MalformedRequestError("The Idempotency-Key header must be printable ASCII without spaces.")
    return key


TraceParent = Annotated[
    str | None, Header(description="W3C Trace Context; its trace id is stored where the body has no `trace_id`.")
]


async def _trace_id(traceparent: TraceParent = None) -> str | None:
    return trace_id(traceparent)


async def _build_request_threads(request: Request) -> RequestThreads:
    answering: WorkThreads = request.app.state.answering
    return RequestThreads(answering, holder(request.scope))


App = Annotated[Application, Depends(_services)]
Answering = Annotated[RequestThreads, Depends(_build_request_threads)]


def require_wing(name: str) -> params.Depends:
    """Declare that a route belongs to a wing; it answers 404 `wing-off` while the wing is off."""

    async def check(app: App) -> None:
        if name not in app.wing_services:
            raise WingOffError(f"The wing {name!r} is off. ENGRAM_WINGS says which wings are on.")

    return cast(params.Depends, Depends(check))


async def limit_time(request: Request) -> None:
    """Give the request its time, from now on, and end it once its client leaves: waiting for a thread counts."""
    deadline.begin((await _services(request)).settings.query_timeout_seconds)
    deadline.watch_client(request.scope[CLIENT_LEFT])


async def _read_principal(request: Request) -> Principal:
    principal: Principal = request.scope[PRINCIPAL]
    return principal


Row = TypeVar("Row")
I = TypeVar("I", int, UUID)  # noqa: E741 - as in "id"
Asker = Annotated[Principal, Depends(_read_principal)]
NEED_KEY = "engram.need"
"""Where what a route needs stands in a request's ASGI scope."""


ReadersRule = Literal["bound", "lifted", "refused"]
"""How a route goes by the readers of passages: "bound": it sees what its caller may; "lifted": it sees everything
and shows nothing of it; "refused": it does not tell, so that it takes `admin` where passages have readers."""


class RequiredScope:
    """Scope that a route requires, declared among its ``dependencies``.

    Routes that name a collection need it there: whatever resolves the collection asks for it.

    Attributes:
        recorded: whether the audit log has requests to the route that change something.
        readers: how the route goes by the readers of passages, see ``ReadersRule``.
    """

    def __init__(
        self,
        scope: str,
        *,
        everywhere: bool = False,
        takes: QuotaKind | None = None,
        recorded: bool = False,
        readers: ReadersRule | None = None,
    ) -> None:
        self.scope = scope
        self.readers: ReadersRule = readers or ("lifted" if scope in (ADMIN, INGEST) else "refused")
        self.takes = takes
        self.everywhere = everywhere
        self.recorded = recorded or scope in (ADMIN, MODERATE)

    async def __call__(self, request: Request) -> None:
        """Refuse whoever may do this nowhere, or has had enough of it today.

        Raises:
            ForbiddenError: the principal may not.
            QuotaExceededError: its tenant has had what it may.
        """
        app = await _services(request)
        asker: Principal = request.scope[PRINCIPAL]
        grants = asker.grants
        if self.scope not in (grants.list_scopes(ANY_COLLECTION) if self.everywhere else grants.list_all_scopes()):
            where = " on all collections" if self.everywhere else ""
            raise ForbiddenError(f"This takes a key with the scope `{self.scope}`{where}.", scope=self.scope)
        request.scope[NEED_KEY] = self.scope
        if self.readers != "bound" and asker.readers is not None:
            await self._lift_readers(app, asker, request)
        if asker is not LOCAL:
            token_meter.begin(app.auth.quotas.meter(asker))
            if self.takes is not None:
                await run_in_threadpool(app.auth.quotas.take, asker, self.takes)

    async def _lift_readers(self, app: Application, asker: Principal, request: Request) -> None:
        """Let the request see passages whoever their readers are, if it may.

        Raises:
            ForbiddenError: the route does not go by readers, and passages have some.
        """
        # A body may name another collection than the query does.
        by_query = "" if request.method in ("POST", "PUT", "PATCH") else request.query_params.get("collection", "")
        named = request.path_params.get("name") or by_query
        if self.readers != "lifted" and ADMIN not in asker.grants.list_scopes(named):
            await run_in_threadpool(app.auth.access.check_whole_tenant, asker)
        tenancy.become(tenancy.Visibility(asker.tenant))


def needs(
    scope: str,
    *,
    everywhere: bool = False,
    takes: QuotaKind | None = None,
    recorded: bool = False,
    readers: ReadersRule | None = None,
) -> params.Depends:
    """Stands among the ``dependencies`` of a route that takes this scope.

    Args:
        everywhere: on all collections.
        takes: what a request there counts as towards the quotas of its tenant.
        recorded: whether the audit log has requests there, as it has those that take `admin` or `moderate`.
        readers: see ``ReadersRule``; by default "lifted" where it takes `admin` or `ingest`, else "refused".
    """
    need = RequiredScope(scope, everywhere=everywhere, takes=takes, recorded=recorded, readers=readers)
    return cast(params.Depends, Depends(need))


def find_need(dependencies: Iterable[params.Depends]) -> RequiredScope | None:
    """Find what a route with these dependencies needs."""
    needed = (declared.dependency for declared in dependencies)
    return next((need for need in needed if isinstance(need, RequiredScope)), None)


async def _need(request: Request) -> str:
    need: str = request.scope[NEED_KEY]  # a route that does not say what it takes is of use to nobody
    return need


Need = Annotated[str, Depends(_need)]
EventId = Annotated[int, Path(ge=1, le=MAX_ID)]
InCollection = Annotated[CollectionName, Query(alias="collection", description="The collection's name.")]


def _find_query_scope(app: App, asker: Asker, need: Need, collection: InCollection = DEFAULT_COLLECTION) -> Scope:
    return app.auth.access.scope_or_missing(collection, asker, need)


Anywhere = Annotated[
    CollectionName | None,
    Query(alias="collection", description="The collection's name; absent: whichever holds it."),
]


@dataclass(frozen=True, slots=True)
class ResourceAccess(Generic[I]):
    """The id of a resource, and the scope of its collection. The resource itself may not exist."""

    id: I
    scope: Scope


@dataclass(frozen=True, slots=True)
class CollectionAccess:
    """Access to a resource that a request names by its id.

    Attributes:
        asker: sender of the request.
        need: scope that the request takes.
        collection: as the request names it, or None.
    """

    access: AccessService
    asker: Principal
    need: str
    collection: str | None

    def resolve_collection(self, kind: ResourceKind, identity: I) -> ResourceAccess[I]:
        """Resolve the collection: the one that the request names, else the one that holds the resource.

        A named collection is not searched for the resource.
        """
        if self.collection is None:
            return ResourceAccess(identity, self.access.find_holding_scope(kind, identity, self.asker, self.need))
        return ResourceAccess(identity, self.access.scope_or_missing(self.collection, self.asker, self.need))


async def _build_collection_access(
    app: App, asker: Asker, need: Need, collection: Anywhere = None
) -> CollectionAccess:
    return CollectionAccess(app.auth.access, asker, need, collection)


By = Annotated[CollectionAccess, Depends(_build_collection_access)]


def _resolve_job(access: By, job_id: UUID) -> ResourceAccess[UUID]:
    return access.resolve_collection(JOB, job_id)


def _resolve_query(access: By, query_id: UUID) -> ResourceAccess[UUID]:
    return access.resolve_collection(QUERY, query_id)


def _resolve_verdict(access: By, feedback_id: EventId) -> ResourceAccess[int]:
    return access.resolve_collection(VERDICT, feedback_id)


async def build_opener(app: Application, asker: Principal, need: str) -> Callable[[str], CollectionOpening]:
    """Return how the asker opens a collection that may not exist yet, within its tenant's quotas."""
    access = app.auth.access
    routes = await run_in_threadpool(access.list_routes, asker)
    if asker is LOCAL:
        return lambda name: access.prepare_opening(name, asker, need, routes)
    room = await run_in_threadpool(app.auth.quotas.room, asker)
    full = await run_in_threadpool(app.auth.quotas.collections_full, asker)
    return lambda name: replace(access.prepare_opening(name, asker, need, routes), room=room, full=full)


def _find_path_scope(app: App, asker: Asker, need: Need, name: CollectionName) -> Scope:
    return app.auth.access.scope_or_missing(name, asker, need)


class BodyCollection(Protocol):
    """A body that names a collection."""

    @property
    def collection(self) -> str: ...


B = TypeVar("B", bound=BodyCollection)


@dataclass(frozen=True, slots=True)
class PostedBody(Generic[B]):
    """A request body, and the scope of the collection that it names."""

    body: B
    scope: Scope


def read_body(model: type[B]) -> Callable[..., PostedBody[B]]:
    """Return a dependency that reads the body and resolves the collection that it names."""

    def read(app: App, asker: Asker, need: Need, body: B) -> PostedBody[B]:
        return PostedBody(body, app.auth.access.scope_or_missing(body.collection, asker, need))

    read.__annotations__["body"] = model  # where FastAPI looks
    return read


if TYPE_CHECKING:
    Posted = PostedBody
else:

    class Posted:
        """``Posted[Model]``: a parameter of a route that is given the body, by ``read_body``."""

        def __class_getitem__(cls, model: type) -> Any:
            return Annotated[PostedBody[model], Depends(read_body(model))]


def read_frequent_body(model: type[B]) -> Callable[..., Awaitable[PostedBody[B]]]:
    """Parse a body as ``read_body`` does, without looking up a collection that this process saw before.

    For a route that can do with a scope of then: see ``AccessService.find_remembered_scope``.
    """

    async def read(app: App, asker: Asker, need: Need, body: B) -> PostedBody[B]:
        scope = app.auth.access.find_remembered_scope(body.collection, asker, need)
        if scope is None:
            scope = await run_in_threadpool(app.auth.access.scope_or_missing, body.collection, asker, need)
        return PostedBody(body, scope)

    read.__annotations__["body"] = model
    return read


@dataclass(frozen=True, slots=True)
class AskingRequest:
    """A request that asks questions.

    Attributes:
        asker: its sender.
        need: scope that it takes.
        threads: where its questions are answered.
        parent: trace id of its caller's trace; None: it names none.
        rate: counts what the request asks towards its sender's rate; None: no rate is set.
    """

    app: Application
    asker: Principal
    need: str
    threads: RequestThreads
    parent: str | None
    rate: RequestRate | None


async def _read_asking_request(request: Request, traceparent: TraceParent = None) -> AskingRequest:
    app, threads = await _services(request), await _build_request_threads(request)
    scope = request.scope
    return AskingRequest(
        app, scope[PRINCIPAL], scope[NEED_KEY], threads, trace_id(traceparent), scope.get(REQUEST_RATE)
    )


Asking = Annotated[AskingRequest, Depends(_read_asking_request)]
JobAt = Annotated[ResourceAccess[UUID], Depends(_resolve_job)]
QueryAt = Annotated[ResourceAccess[UUID], Depends(_resolve_query)]
VerdictAt = Annotated[ResourceAccess[int], Depends(_resolve_verdict)]
QueryScope = Annotated[Scope, Depends(_find_query_scope)]
PathScope = Annotated[Scope, Depends(_find_path_scope)]
ParentTrace = Annotated[str | None, Depends(_trace_id)]
RequiredKey = Annotated[str, Depends(_require_key)]
OptionalKey = Annotated[str | None, Depends(_read_optional_key)]
Limit = Annotated[int, Query(ge=1, le=1_000, description="Rows per page.")]


def cut_page(rows: Sequence[Row], limit: int) -> tuple[Sequence[Row], Row | None]:
    """Cut a page of at most ``limit`` rows from rows with one more, which tells that there is a next page.

    Returns:
        the page, and its last row; None: it is the last page.
    """
    return rows[:limit], rows[limit - 1] if len(rows) > limit else None
