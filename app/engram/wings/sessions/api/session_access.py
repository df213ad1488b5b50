"""Dependencies of routes of sessions: the session that a request names, in its collection."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Generic, Protocol, TypeVar
from uuid import UUID

from fastapi import Depends

from engram.api.dependencies import App, Asker, By, CollectionAccess, Need, ResourceAccess
from engram.services.auth.scope import Scope
from engram.wings.sessions.services.session_service import SESSION


def _resolve_session(access: By, session_id: UUID) -> ResourceAccess[UUID]:
    return access.resolve_collection(SESSION, session_id)


SessionAt = Annotated[ResourceAccess[UUID], Depends(_resolve_session)]


class OptionalCollection(Protocol):
    """A body that may name a collection."""

    @property
    def collection(self) -> str | None: ...


M = TypeVar("M", bound=OptionalCollection)


@dataclass(frozen=True, slots=True)
class PostedToSession(Generic[M]):
    """A request body for a session, and the scope of the session's collection."""

    session_id: UUID
    body: M
    scope: Scope


def read_session_body(model: type[M]) -> Callable[..., PostedToSession[M]]:
    """Return a dependency that reads the body and resolves its collection.

    It is the collection that the body names, else the one that holds the session of the path.
    """

    def read(app: App, asker: Asker, need: Need, session_id: UUID, body: M) -> PostedToSession[M]:
        access = CollectionAccess(app.auth.access, asker, need, body.collection)
        return PostedToSession(session_id, body, access.resolve_collection(SESSION, session_id).scope)

    read.__annotations__["body"] = model  # where FastAPI looks
    return read
