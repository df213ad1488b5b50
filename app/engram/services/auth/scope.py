"""Scope of a request: its collection and its principal, resolved once at the edge and taken by every service."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from uuid import UUID

from engram.context import tenancy
from engram.context.errors import (
    CollectionMovedError,
    CollectionMovingError,
    EmbeddingSpaceMismatchError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    QuotaExceededError,
)
from engram.context.tenancy import ReaderNames
from engram.core.auth.access_keys import ACT_AS, ADMIN, ALL_GRANTS, AUDIT, INGEST, JUDGE_AS, MODERATE, Grants
from engram.core.auth.reader_names import is_reader_name, normalise_readers
from engram.core.learning.judge_names import normalise_name
from engram.services.encoders.encoder import Encoder
from engram.storage import moved_collections
from engram.storage.corpus import collections, reader_sets
from engram.storage.corpus.collections import (
    JOB,
    LOCAL_TENANT,
    QUERY,
    VERDICT,
    Collection,
    EncoderId,
    OpenedCollection,
    ResourceKind,
)
from engram.storage.database import Database, Reader, Writer

__all__ = [
    "JOB",
    "LOCAL",
    "QUERY",
    "VERDICT",
    "AccessService",
    "Collection",
    "CollectionOpening",
    "MissingCollectionScope",
    "Principal",
    "ResourceKind",
    "Scope",
    "build_forbidden_error",
    "is_keyless",
]

MOST_CACHED_SCOPES = 1_000
"""Scopes that a process remembers."""
COLLECTIONS_PER_PAGE = 1_000
ACTED_CHARACTERS = 16
"""Of the hash of readers, in the name of a principal that is asked for."""
ANONYMOUS = "anonymous"
"""The judge of a verdict that names none, where no key does."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Whoever makes a request.

    Attributes:
        name: unique within the tenant.
        tenant: whose collections it reaches.
        grants: what it may do with which of them.
        judges_as: the judge that its verdicts are of; None: whom each names.
        trusted: whether that judge counts in full from its first verdict on.
        llm_tokens: what a day's calls of a language model may read and write for it; None: any number.
        reads_as: what it is among the readers of passages.
        caller: name of the principal that asks for it, see ``Scope.act_as``; None: it asks itself.
    """

    name: str
    tenant: str
    grants: Grants = ALL_GRANTS
    judges_as: str | None = None
    trusted: bool = True
    llm_tokens: int | None = None
    reads_as: tuple[str, ...] = ()
    caller: str | None = None

    @property
    def readers(self) -> ReaderNames | None:
        """Readers whose passages it sees; None: all, as it may do everything everywhere."""
        administered = self.grants.collections(ADMIN)
        return None if administered is None else ReaderNames(self.reads_as, tuple(sorted(administered)))

    @property
    def holder(self) -> str:
        """Name under which its limits are counted: its caller's, as a caller may name any number of people."""
        return self.caller or self.name

    def act_as(self, readers: tuple[str, ...]) -> "Principal":
        """The principal that asks for somebody who is these among the readers: it sees what that person may see."""
        digest = hashlib.sha256("\0".join(readers).encode()).hexdigest()[:ACTED_CHARACTERS]
        return replace(
            self,
            name=f"{self.name} as {digest}",
            grants=self.grants.without(ADMIN, AUDIT, MODERATE),
            reads_as=readers,
            caller=self.name,
        )

    def name_person(self, reader: str) -> "Principal":
        """The principal that asks for one person in all that a request does, and for nobody else.

        Raises:
            ForbiddenError: it may not ask for others, or ``reader`` is no name of a reader.
        """
        grants = self.grants.only_with(ACT_AS)
        if not grants.scopes:
            raise ForbiddenError("To name a person takes a key with the scope `act-as`.", scope=ACT_AS)
        if not is_reader_name(reader):
            raise ForbiddenError("The header that names a person names nobody.")
        acted = self.act_as(normalise_readers([reader]))
        return replace(acted, grants=grants.without(ADMIN, AUDIT, MODERATE, ACT_AS))


LOCAL = Principal("local", LOCAL_TENANT)
"""Whoever asks where there is no access control."""


def is_keyless(principal: Principal) -> bool:
    """Whether that is ``LOCAL``, though it was stored meanwhile."""
    return (principal.name, principal.tenant, principal.llm_tokens) == (LOCAL.name, LOCAL.tenant, None)


@dataclass(frozen=True, slots=True)
class Scope:
    """A principal at a collection, as that was when the request came in.

    It may be gone since: whoever writes keeps or locks its row by its id first, and an id is never given again.
    """

    principal: Principal
    collection: Collection

    def is_allowed(self, scope: str) -> bool:
        """Whether the principal may do this with the collection."""
        return scope in self.principal.grants.list_scopes(self.collection.name)

    def need(self, scope: str, action: str) -> None:
        """Go on only if the principal may.

        Raises:
            ForbiddenError: it may not; ``action`` takes the scope.
        """
        if not self.is_allowed(scope):
            raise build_forbidden_error(scope, self.collection.name, action)

    def sees(self, owner: str) -> bool:
        """Whether the principal may see what another one asked or said."""
        return owner == self.principal.name or self.is_allowed(AUDIT)

    @contextmanager
    def act_as(self, names: Sequence[str] | None) -> Iterator["Scope"]:
        """A block that asks for somebody who is these among the readers; its scope. None: for the principal itself.

        Whoever is asked for is another principal, who sees neither everything nor what others asked.

        Raises:
            ForbiddenError: the principal may not ask for others.
            InvalidRequestError: one is no name of a reader.
        """
        if names is None:
            yield self
            return
        self.need(ACT_AS, "To ask `as` somebody else")
        try:
            readers = normalise_readers(names)
        except ValueError as error:
            raise InvalidRequestError(f"as: {error}.") from error
        acted = self.principal.act_as(readers)
        with tenancy.restrict_to(acted.tenant, acted.readers):
            yield replace(self, principal=acted)

    def judge(self, claimed: str | None) -> tuple[str, bool]:
        """The judge that a verdict is of, and whether it is trusted by whose request brings it.

        Raises:
            InvalidRequestError: it is no name.
            ForbiddenError: the principal judges under another name.
        """
        try:
            judge_name = None if claimed is None else normalise_name(claimed)
        except ValueError as error:
            raise InvalidRequestError(f"{claimed!r}: {error}.") from error
        own = self.principal.judges_as
        if own is None:
            return judge_name or ANONYMOUS, self.principal.trusted
        if judge_name in {None, own}:
            return own, self.principal.trusted
        self.need(JUDGE_AS, f"To judge as another than {own!r}")
        return judge_name or own, False


def build_forbidden_error(scope: str, collection: str, action: str = "This") -> ForbiddenError:
    """Make the error for a principal that may use the collection, but not for this."""
    return ForbiddenError(
        f"{action} takes a key with the scope `{scope}` on collection {collection!r}.", scope=scope
    )


class MissingCollectionScope(Scope):
    """Scope of a collection that does not exist: looking at ``collection`` raises."""

    __slots__ = ("_error",)
    _error: NotFoundError

    def __init__(self, principal: Principal, error: NotFoundError) -> None:
        object.__setattr__(self, "principal", principal)
        object.__setattr__(self, "_error", error)

    @property
    def collection(self) -> Collection:
        """Raise the error of the missing collection.

        Raises:
            NotFoundError: whenever it is asked for.
        """
        raise self._error


@dataclass(frozen=True, slots=True)
class CollectionOpening:
    """A principal at a collection that is made, if it does not exist, by the first thing that is put into it.

    Attributes:
        room: how many passages may be put into it, None for any number.
        full: what to raise if it does not exist; None if it may be made.
        encoder: the name of the encoder that it must be of; None: any, and a new one is of the default encoder.
    """

    principal: Principal
    name: str
    room: int | None = None
    full: QuotaExceededError | None = None
    encoder: str | None = None

    def open(self, writer: Writer, encoder: Encoder, chosen: EncoderId) -> OpenedCollection:
        """The collection, kept from deletion by this transaction; what is put into it is embedded by ``encoder``.

        Args:
            chosen: what ``encoder.choose`` gave for ``self.encoder``, before the transaction began.

        Raises:
            EmbeddingSpaceMismatchError: it is there, and its vectors are of an encoder that is not here, or of
                another one than ``self.encoder``.
            QuotaExceededError: it is not there, and its tenant has as many as it may.
        """
        opened = collections.open_for_writing(writer, self.name, chosen, self.principal.tenant)
        if opened.created and self.full is not None:
            raise self.full
        encoder.check_known(opened.collection)
        if self.encoder is not None and opened.collection.encoder_fingerprint != chosen.fingerprint:
            raise EmbeddingSpaceMismatchError(
                f"Collection {self.name!r} holds vectors of {opened.collection.encoder_model!r}, not of "
                f"{self.encoder!r}; `engram collection reembed` moves it."
            )
        return opened


class AccessService:
    """Finds what a principal asks for by its name: nothing behind it goes by a collection's name again.

    To a principal that may do nothing with a collection it is as if there were none, of whichever tenant it is. So
    that neither its words nor its time tell, it is looked up all the same.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._remembered: dict[tuple[Principal, str], Scope] = {}

    def scope(self, name: str, principal: Principal = LOCAL, need: str | None = None) -> Scope:
        """The principal at the collection called ``name``.

        Args:
            need: what is to be done with it.

        Raises:
            NotFoundError: there is no such collection, or none for this principal.
            CollectionMovingError, CollectionMovedError: it is hidden for its move.
            ForbiddenError: the principal may do other things with it, but not this.
        """
        try:
            with self._database.read() as reader:
                scope = Scope(principal, collections.find(reader, name, principal.tenant))
        except (CollectionMovingError, CollectionMovedError):
            if not principal.grants.list_scopes(name):
                raise collections.build_missing_error(name) from None
            raise
        _check(scope, need)
        if len(self._remembered) >= MOST_CACHED_SCOPES:
            self._remembered.clear()
        self._remembered[principal, name] = scope
        return scope

    def list_scopes(self, principal: Principal = LOCAL) -> list[Scope]:
        """The principal at each collection that it may use, by name; copies of past moments left out."""
        listed: list[Collection] = []
        with self._database.read() as reader:
            while page := collections.page(
                reader, listed[-1].name if listed else None, COLLECTIONS_PER_PAGE, principal.tenant
            ):
                listed += page
        return [
            Scope(principal, one) for one in listed if one.past is None and principal.grants.list_scopes(one.name)
        ]

    def list_routes(self, principal: Principal = LOCAL) -> dict[str, str]:
        """Collections in other databases that it may use, by name: each with the address of its API."""
        with self._database.read() as reader:
            return _read_routes(reader, principal)

    def scope_or_missing(self, name: str, principal: Principal = LOCAL, need: str | None = None) -> Scope:
        """Return the scope, or in place of a missing collection one that raises on first use.

        For requests: what is wrong with one comes before what it names is missing.
        """
        try:
            return self.scope(name, principal, need)
        except NotFoundError as error:
            return MissingCollectionScope(principal, error)

    def find_holding_scope(
        self, kind: ResourceKind, identity: int | UUID, principal: Principal = LOCAL, need: str | None = None
    ) -> Scope:
        """The principal at the collection that holds something of this kind and id.

        Of a collection and its copies, the collection. If there is none, or none for this principal, the scope
        raises on first use, as that of ``scope_or_missing``.

        Raises:
            InvalidRequestError: several hold one.
            ForbiddenError: the principal may do other things with the collection, but not this.
        """
        with self._database.read() as reader:
            holding = collections.list_holding(reader, kind, identity, principal.tenant)
            reached = [collection for collection in holding if principal.grants.list_scopes(collection.name)]
            if not reached:
                error = collections.build_missing_resource_error(kind, identity)
                error.elsewhere = tuple(dict.fromkeys(_read_routes(reader, principal).values()))
                return MissingCollectionScope(principal, error)
        holders = [collection for collection in reached if collection.past is None] or reached
        if len(holders) > 1:
            names = ", ".join(collection.name for collection in holders)
            raise InvalidRequestError(
                f"There is a {kind.name} {identity} in each of {names}: say which collection."
            )
        scope = Scope(principal, holders[0])
        _check(scope, need)
        return scope

    def are_there_readers(self, tenant: str) -> bool:
        """Whether a passage of the tenant has readers, or had."""
        with tenancy.allow_all_tenants(), self._database.read() as reader:
            return reader_sets.exist(reader, tenant)

    def check_whole_tenant(self, principal: Principal) -> None:
        """See that the principal may know of all passages of its tenant: none has readers, or it may do everything.

        Raises:
            ForbiddenError: it may not.
        """
        if principal.readers is not None and self.are_there_readers(principal.tenant):
            raise ForbiddenError(
                "This does not go by the readers of passages: where passages have readers, it takes a key with the "
                "scope `admin`.",
                scope=ADMIN,
            )

    def check_ingest(self, scope: Scope) -> None:
        """See that the principal may know of all passages: it may ingest them, or none has readers.

        Raises:
            NotFoundError: the collection is not there.
            ForbiddenError: it may not.
        """
        sees_all = scope.principal.readers is None or scope.is_allowed(INGEST)
        if not sees_all and self.are_there_readers(scope.principal.tenant):
            scope.need(INGEST, "Where passages have readers, this")

    def find_remembered_scope(
        self, name: str, principal: Principal = LOCAL, need: str | None = None
    ) -> Scope | None:
        """Return the scope that this process resolved last; None if it has none.

        Of the collection, only the id and the name are to be relied on: it may have changed, and may be gone, even
        with another in its place. Whoever takes it must be told so by the service that it is given to (GoneError,
        as an id is never given again), and then asks for the scope.

        Raises:
            ForbiddenError: as ``scope``.
        """
        scope = self._remembered.get((principal, name))
        if scope is not None:
            _check(scope, need)
        return scope

    def prepare_opening(
        self,
        name: str,
        principal: Principal = LOCAL,
        need: str | None = None,
        routes: Mapping[str, str] = MappingProxyType({}),
    ) -> CollectionOpening:
        """The principal at a collection that need not exist yet.

        Args:
            routes: what ``list_routes`` says.

        Raises:
            NotFoundError, ForbiddenError: as ``scope``, but for a collection that is not there.
            CollectionMovedError: it is among ``routes``.
        """
        allowed = principal.grants.list_scopes(name)
        if need is not None and need not in allowed:
            raise build_forbidden_error(need, name) if allowed else collections.build_missing_error(name)
        if name in routes:
            raise moved_collections.build_moved_error(name, routes[name])
        return CollectionOpening(principal, name)


def _read_routes(reader: Reader, principal: Principal) -> dict[str, str]:
    routes = moved_collections.read_routes(reader, principal.tenant)
    return {name: address for name, address in routes.items() if principal.grants.list_scopes(name)}


def _check(scope: Scope, need: str | None) -> None:
    """Raise what stands against it."""
    allowed, name = scope.principal.grants.list_scopes(scope.collection.name), scope.collection.name
    if not allowed:
        raise collections.build_missing_error(name)
    if need is not None and need not in allowed:
        raise build_forbidden_error(need, name)
