"""What a request is about and who makes it: resolved once at the edge, and taken by every service."""

from dataclasses import dataclass
from uuid import UUID

from app.errors import InvalidRequestError, NotFoundError
from app.services.access.encoder import Encoder
from app.storage.corpus import collections
from app.storage.corpus.collections import Collection, Held, Opened
from app.storage.database import Database, Writer

ById = Held
"""What is found by its id alone: a job, an answered query, a verdict."""
REMEMBERED = 1_000
"""Scopes that a process remembers."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Whoever makes a request.

    Attributes:
        name: unique within the deployment.
        tenant: whose collections it reaches.
    """

    name: str
    tenant: str

    def judge(self, claimed: str) -> str:
        """The judge that its verdicts are of: without access control, the one they name."""
        return claimed


LOCAL = Principal("local", "local")
"""Whoever asks where there is no access control."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A principal at a collection, as that was when the request came in.

    It may be gone since: whoever writes keeps or locks its row by its id first, and an id is never given again.
    """

    principal: Principal
    collection: Collection


class Missing(Scope):
    """A scope whose collection is not there, which whoever looks at it is told."""

    __slots__ = ("_error",)
    _error: NotFoundError

    def __init__(self, principal: Principal, error: NotFoundError) -> None:
        object.__setattr__(self, "principal", principal)
        object.__setattr__(self, "_error", error)

    @property
    def collection(self) -> Collection:
        """Nothing.

        Raises:
            NotFoundError: whenever it is asked for.
        """
        raise self._error


@dataclass(frozen=True, slots=True)
class Opening:
    """A principal at a collection that is made, if it does not exist, by the first thing that is put into it."""

    principal: Principal
    name: str

    def open(self, writer: Writer, encoder: Encoder) -> Opened:
        """The collection, kept from deletion by this transaction; what is put into it is embedded by ``encoder``.

        Raises:
            EmbeddingSpaceMismatchError: it is there, and its vectors are of another encoder.
        """
        opened = collections.open_for_writing(writer, self.name, encoder.id)
        encoder.check(opened.collection)
        return opened


class AccessService:
    """Finds what a principal asks for by its name: nothing behind it goes by a collection's name again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._remembered: dict[tuple[Principal, str], Scope] = {}

    def scope(self, name: str, principal: Principal = LOCAL) -> Scope:
        """The principal at the collection called ``name``.

        Raises:
            NotFoundError: there is no such collection.
        """
        with self._database.read() as reader:
            scope = Scope(principal, collections.find(reader, name))
        if len(self._remembered) >= REMEMBERED:
            self._remembered.clear()
        self._remembered[principal, name] = scope
        return scope

    def asked(self, name: str, principal: Principal = LOCAL) -> Scope:
        """As ``scope``, but that there is no such collection is told by the scope, to whoever looks at it.

        For requests: what is wrong with one comes before what it names is missing.
        """
        try:
            return self.scope(name, principal)
        except NotFoundError as error:
            return Missing(principal, error)

    def holding(self, what: ById, identity: int | UUID, principal: Principal = LOCAL) -> Scope:
        """The principal at the collection that holds a job, an answered query or a verdict of this id.

        Of a collection and its copies, the collection. As with ``asked``, that there is none is told by the scope.

        Raises:
            InvalidRequestError: several hold one.
        """
        with self._database.read() as reader:
            found = collections.holding(reader, what, identity)
        originals = [collection for collection in found if collection.past is None] or found
        if not originals:
            return Missing(principal, NotFoundError(f"There is no {what} {identity} in any collection."))
        if len(originals) > 1:
            names = ", ".join(collection.name for collection in originals)
            raise InvalidRequestError(f"There is a {what} {identity} in each of {names}: say which collection.")
        return Scope(principal, originals[0])

    def remembered(self, name: str, principal: Principal = LOCAL) -> Scope | None:
        """As ``scope`` answered this process last; None if it never did, or forgot.

        Of the collection, only the id and the name are to be relied on: it may have changed, and may be gone, even
        with another in its place. Whoever takes it must be told so by the service that it is given to (GoneError,
        as an id is never given again), and then asks for the scope.
        """
        return self._remembered.get((principal, name))

    def opening(self, name: str, principal: Principal = LOCAL) -> Opening:
        """The principal at a collection that need not exist yet."""
        return Opening(principal, name)
