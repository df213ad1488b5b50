"""Access keys: made and shown once, listed, followed by others, revoked. And the tenants that own them."""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog

from engram.context import tenancy
from engram.context.errors import ConflictError, ForbiddenError, InvalidRequestError, NotFoundError
from engram.core.auth.access_keys import (
    ADMIN,
    ALL_GRANTS,
    ANY_COLLECTION,
    HINT_CHARACTERS,
    RANDOM_BYTES,
    Grants,
    build_key,
    digest,
)
from engram.core.auth.reader_names import normalise_readers
from engram.core.learning.judge_names import normalise_name
from engram.services.auth.authentication import OIDC
from engram.services.auth.scope import LOCAL, Principal
from engram.storage.auth import access_key_rows, tenants
from engram.storage.auth.access_key_rows import NewKey, StoredKey
from engram.storage.auth.tenants import Quotas, Tenant
from engram.storage.database import Database

Key = StoredKey
"""A key as it is known."""
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class NewAccessKey:
    """A key that was made: the only time that it is seen."""

    key: str
    stored: StoredKey


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessKeyRequest:
    """A key to make.

    Attributes:
        name: of its principal, who may have several keys.
        scopes: collection, or "*" -> what is to be allowed there.
        judge: whose verdicts come with it; by default the principal.
        trusted: whether that judge counts in full from its first verdict on.
        llm_tokens: what a day's calls of a language model may read and write.
        days: for how long it counts; None: until it is revoked.
        reads_as: what it is among the readers of passages, as ``group:hr``.
    """

    name: str
    scopes: Mapping[str, Iterable[str]]
    judge: str | None = None
    trusted: bool = False
    llm_tokens: int | None = None
    days: float | None = None
    reads_as: Sequence[str] = ()


class KeysService:
    """Makes keys and takes them back."""

    def __init__(self, database: Database, changed: Callable[[], None] = lambda: None) -> None:
        """``changed`` is called when a key that may be remembered counts no more, or not for as long."""
        self._database = database
        self._changed = changed

    def make(self, by: Principal, request: AccessKeyRequest, tenant: str | None = None) -> NewAccessKey:
        """A new key, of the tenant of whoever makes it; ``tenant``, another one, is for ``LOCAL`` alone.

        Raises:
            ForbiddenError: it would allow more than whoever makes it may.
            InvalidRequestError: a name or a scope is none.
            ConflictError: another principal judges under that name.
        """
        owner = by.tenant if tenant is None else tenant
        name, judge, grants = _read(request)
        if owner != by.tenant and by != LOCAL:
            raise ForbiddenError("Keys are made for one's own tenant.")
        if not by.grants.covers(grants) or (request.trusted and not by.trusted):
            raise ForbiddenError("A key cannot allow more than the one it is made with.")
        key = build_key(secrets.token_bytes(RANDOM_BYTES))
        new = NewKey(
            tenant=owner,
            name=name,
            judge=judge,
            trusted=request.trusted,
            digest=digest(key),
            hint=key[-HINT_CHARACTERS:],
            scopes=grants.as_json(),
            llm_tokens=_find_least(request.llm_tokens, by.llm_tokens),
            expires_at=None if request.days is None else datetime.now(UTC) + timedelta(days=request.days),
            reads_as=_read_readers(by, request),
        )
        with tenancy.allow_all_tenants(), self._database.write() as writer:
            if by == LOCAL:
                tenants.make(writer, owner)
            if not tenants.exists(writer, owner):
                raise ConflictError(f"Tenant {owner!r} is being removed.")
            if access_key_rows.is_judge_name_taken(writer, owner, judge, name):
                raise ConflictError(f"Another principal than {name!r} judges as {judge!r}.")
            stored = access_key_rows.insert(writer, new)
        log.info(
            "access key made", by=by.name, tenant=owner, principal=name, key_id=stored.id, scopes=stored.scopes
        )
        return NewAccessKey(key, stored)

    def page(self, by: Principal, after: int, limit: int, tenant: str | None = None) -> list[StoredKey]:
        """Keys of the tenant in the order in which they were made, those after ``after``."""
        with tenancy.allow_all_tenants(), self._database.read() as reader:
            return access_key_rows.page(reader, tenant or by.tenant, after, limit)

    def rotate(self, by: Principal, key_id: int, grace_seconds: float, tenant: str | None = None) -> NewAccessKey:
        """A key that follows another one, of the same principal; the other counts for so long more.

        Raises:
            NotFoundError: there is no such key.
            ConflictError: it was revoked.
            ForbiddenError: it allows more than whoever rotates it may.
        """
        with tenancy.allow_all_tenants(), self._database.write() as writer:
            old = access_key_rows.find(writer, tenant or by.tenant, key_id)
            if old is None:
                raise _build_missing_error(key_id)
            if old.revoked_at is not None:
                raise ConflictError(f"Access key {key_id} was revoked; make another one.")
            if not by.grants.covers(Grants.from_mapping(old.scopes)) or (old.trusted and not by.trusted):
                raise ForbiddenError("A key cannot allow more than the one it is made with.")
            key = build_key(secrets.token_bytes(RANDOM_BYTES))
            stored = access_key_rows.insert(
                writer,
                NewKey(
                    tenant=old.tenant,
                    name=old.name,
                    judge=old.judge,
                    trusted=old.trusted,
                    digest=digest(key),
                    hint=key[-HINT_CHARACTERS:],
                    scopes=old.scopes,
                    llm_tokens=old.llm_tokens,
                    expires_at=_as_long(old),
                    reads_as=old.reads_as,
                ),
            )
            access_key_rows.expire(writer, old.id, grace_seconds)
        self._changed()
        log.info("access key rotated", by=by.name, tenant=old.tenant, key_id=old.id, followed_by=stored.id)
        return NewAccessKey(key, stored)

    def revoke(self, by: Principal, key_id: int, tenant: str | None = None) -> StoredKey:
        """Have a key count no more.

        Raises:
            NotFoundError: there is no such key.
        """
        with tenancy.allow_all_tenants(), self._database.write() as writer:
            stored = access_key_rows.revoke(writer, tenant or by.tenant, key_id)
        if stored is None:
            raise _build_missing_error(key_id)
        self._changed()
        log.info("access key revoked", by=by.name, tenant=stored.tenant, key_id=key_id)
        return stored

    def set_tenant(self, tenant: str, quotas: Quotas) -> None:
        """Make a tenant, or set its quotas anew.

        Raises:
            InvalidRequestError: it is no name.
        """
        with tenancy.allow_all_tenants(), self._database.write() as writer:
            tenants.put(writer, _name(tenant), quotas)
        log.info("tenant set", tenant=tenant, **quotas.as_row())

    def tenants(self) -> list[Tenant]:
        """All of them by name."""
        with tenancy.allow_all_tenants(), self._database.read() as reader:
            return tenants.list_all(reader)


def _read(request: AccessKeyRequest) -> tuple[str, str, Grants]:
    name = _name(request.name)
    if name == LOCAL.name:
        raise InvalidRequestError(f"{name!r} is whoever needs no key; choose another name.")
    judge = name if request.judge is None else _name(request.judge)
    try:
        grants = Grants.from_mapping(request.scopes)
    except ValueError as error:
        raise InvalidRequestError(f"{error}.") from error
    if not grants.list_all_scopes():
        raise InvalidRequestError("A key that allows nothing is of no use: say which scopes.")
    if ADMIN in grants.list_scopes(ANY_COLLECTION):
        grants = ALL_GRANTS if set(dict(grants.scopes)) == {ANY_COLLECTION} else grants
    return name, judge, grants


def _read_readers(by: Principal, request: AccessKeyRequest) -> tuple[str, ...]:
    try:
        readers = normalise_readers(request.reads_as)
    except ValueError as error:
        raise InvalidRequestError(f"{error}.") from error
    if by.readers is not None and not set(readers) <= set(by.reads_as):
        raise ForbiddenError("A key cannot read as others than the one it is made with.")
    return readers


def _name(name: str) -> str:
    try:
        name_key = normalise_name(name)
    except ValueError as error:
        raise InvalidRequestError(f"{name!r}: {error}.") from error
    if name_key.startswith(OIDC):
        raise InvalidRequestError(f"Names that begin with {OIDC} are those of an identity provider.")
    return name_key


def _as_long(old: StoredKey) -> datetime | None:
    """Return the end of a key that follows this one: the same duration as this one was given."""
    return None if old.expires_at is None else datetime.now(UTC) + (old.expires_at - old.created_at)


def _find_least(*bounds: int | None) -> int | None:
    return min((bound for bound in bounds if bound is not None), default=None)


def _build_missing_error(key_id: int) -> NotFoundError:
    return NotFoundError(f"There is no access key {key_id}.")
