"""Authentication of a request by the access key or token that it brings."""

import hashlib
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engram.context import tenancy
from engram.context.errors import ConfigurationError, UnauthorizedError
from engram.core.auth import access_keys
from engram.core.auth.access_keys import ANY_COLLECTION, Grants
from engram.core.auth.reader_names import is_reader_name
from engram.core.learning.judge_names import normalise_name
from engram.core.text.name_pattern import COLLECTION
from engram.providers.jwt_tokens import Tokens
from engram.services.auth.scope import LOCAL, Principal
from engram.storage.auth import access_key_rows, tenants
from engram.storage.auth.access_key_rows import StoredKey
from engram.storage.database import Database

MOST_CACHED_KEYS = 10_000
"""Keys that a process remembers, those that are none included."""
BEARER = "bearer"
JWT_DOTS = 2
CLAIM = "engram"
"""Of a token: what it allows, and whose collections."""
OIDC = "oidc:"
"""Begins the names of an identity provider's principals and judges, which no key has."""
SUBJECT_CHARACTERS = 32
PrincipalUntil = tuple[Principal | None, float | None]
"""Whose it is, and until when (seconds since 1970)."""


@dataclass(frozen=True, slots=True)
class _KnownKey:
    principal: Principal | None
    until: float


class Authentication:
    """Tells whose a request is.

    A key is looked up once in ``remember_seconds``, so that a check costs a dictionary. A key that is revoked is
    found out as soon as that, and at once where ``forget`` is called.
    """

    def __init__(
        self,
        database: Database,
        *,
        needed: bool,
        remember_seconds: float,
        tokens: Tokens | None = None,
        groups_claim: str = "groups",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.needed = needed
        """Whether a request must bring a key."""
        self._database = database
        self._tokens = tokens
        self._groups_claim = groups_claim
        self._remember_seconds = remember_seconds
        self._clock = clock
        self._cached_keys: dict[bytes, _KnownKey] = {}
        self._accepted: OrderedDict[bytes, None] = OrderedDict()
        self._forgotten = 0
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Look every key up anew: something changed."""
        with self._lock:
            self._cached_keys = {}
            self._forgotten += 1

    def find_cached_principal(self, authorization: str | None) -> Principal | None:
        """Return the principal if it is known without asking the database; else None.

        Raises:
            UnauthorizedError: as ``principal``.
        """
        key = self._read_key(authorization)
        if key is None:
            return LOCAL
        cached = self._cached_keys.get(access_keys.digest(key))
        if cached is None or self._clock() >= cached.until:
            return None
        return _require_principal(cached.principal)

    def find_principal(self, authorization: str | None) -> Principal:
        """Return the principal of a request with this header.

        Raises:
            UnauthorizedError: it has no key where one is needed, or one that does not count.
            UnavailableError: Postgres is out of reach.
        """
        cached = self.find_cached_principal(authorization)
        if cached is not None:
            return cached
        key = self._read_key(authorization)
        digest = access_keys.digest(key or "")
        until, before = self._clock() + self._remember_seconds, self._forgotten
        caller = (
            self._find_token_principal(key)
            if key is not None and self._is_token(key)
            else self._find_key_principal(digest)
        )
        principal, ends = caller
        if ends is not None:
            until = min(until, self._clock() + max(0.0, ends - time.time()))
        with self._lock:
            if len(self._cached_keys) >= MOST_CACHED_KEYS:
                self._cached_keys.clear()
            if principal is not None:
                self._accepted[digest] = None
                if len(self._accepted) > MOST_CACHED_KEYS:
                    self._accepted.popitem(last=False)
            if self._forgotten == before:  # else it may have been looked up before what changed
                self._cached_keys[digest] = _KnownKey(principal, until)
        return _require_principal(principal)

    def has_accepted(self, authorization: str | None) -> bool:
        """Whether this process accepted the same header before; it need not hold any more.

        Raises:
            UnauthorizedError: as ``principal``.
        """
        key = self._read_key(authorization)
        return key is None or access_keys.digest(key) in self._accepted

    def _find_key_principal(self, digest: bytes) -> PrincipalUntil:
        with tenancy.allow_all_tenants(), self._database.read() as reader:
            stored = access_key_rows.find_counting(reader, digest)
        if stored is None:
            return None, None
        return _build_principal(stored), None if stored.expires_at is None else stored.expires_at.timestamp()

    def _is_token(self, text: str) -> bool:
        """Whether it has the form of a JWT, and these are taken."""
        return self._tokens is not None and text.count(".") == JWT_DOTS

    def _find_token_principal(self, token: str) -> PrincipalUntil:
        """Return the principal of an identity provider's token; nobody if its tenant does not exist."""
        claims = {} if self._tokens is None else self._tokens.claims(token)
        principal = build_claimed_principal(claims, self._groups_claim)
        with tenancy.allow_all_tenants(), self._database.read() as reader:
            tenant_exists = tenants.exists(reader, principal.tenant)
        return principal if tenant_exists else None, float(claims["exp"])

    def check_start(self, host: str) -> None:
        """See that whoever reaches the port does not reach everything.

        Raises:
            ConfigurationError: no key is needed nor there, and ``host`` can be reached from elsewhere.
        """
        if not self.needed:
            return
        with tenancy.allow_all_tenants(), self._database.read() as reader:
            if access_key_rows.has_counting_key(reader):
                return
        raise ConfigurationError(
            f"ENGRAM_HOST is {host}, which others can reach, and there is no access key. Make the first one with "
            "`engram access create-key NAME`. ENGRAM_ACCESS=keys starts without one; ENGRAM_ACCESS=open lets in "
            "everybody who reaches the port."
        )

    def _read_key(self, authorization: str | None) -> str | None:
        """The key that a header brings; None if there is none and none is needed.

        Raises:
            UnauthorizedError: none where one is needed, or what cannot be one.
        """
        scheme, _, token = (authorization or "").partition(" ")
        token = token.strip()
        ours = token.startswith(access_keys.PREFIX) or self._is_token(token)
        if scheme.lower() != BEARER or (not self.needed and not ours):
            # Where no key is needed, what others put into the header, as a proxy may, is none of ours.
            if self.needed:
                raise UnauthorizedError("Send an access key: `Authorization: Bearer engram_...`.")
            return None
        if not access_keys.is_key(token) and not self._is_token(token):
            raise UnauthorizedError("That is no access key: its checksum or its form is wrong.")
        return token


def build_claimed_principal(claims: Mapping[str, Any], groups_claim: str = "groups") -> Principal:
    """The principal that a token's claims make: its subject, with what claim ``engram`` allows it.

    Among the readers of passages it is the subject, and each group that ``groups_claim`` lists.

    Raises:
        UnauthorizedError: the claims are not as they should be.
    """
    own = claims.get(CLAIM, {})
    if not str(claims.get("sub", "")).strip():
        raise UnauthorizedError('The token\'s claim "sub" is empty: it has to say who asks.')
    try:
        # Subjects are any text, and names are not: an identity provider's are told by their hash.
        subject = hashlib.sha256(f"{claims['iss']}|{claims['sub']}".encode()).hexdigest()[:SUBJECT_CHARACTERS]
        name = f"{OIDC}{subject}"
        judge = name if own.get("judge") is None else f"{OIDC}{normalise_name(own['judge'])}"
        return Principal(
            name,
            normalise_name(own["tenant"]),
            Grants.from_mapping(
                {normal_collection(of): [str(s) for s in scopes] for of, scopes in own["scopes"].items()}
            ),
            judges_as=judge,
            trusted=own.get("trusted") is True,
            llm_tokens=None if own.get("llm_tokens") is None else int(own["llm_tokens"]),
            reads_as=_read_reader_names(claims, groups_claim),
        )
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise UnauthorizedError(
            f'The token\'s claim "{CLAIM}" has to say whose it is and what it allows, as '
            '{"tenant": "acme", "scopes": {"docs": ["query"]}}.'
        ) from error


def _read_reader_names(claims: Mapping[str, Any], groups_claim: str) -> tuple[str, ...]:
    """The subject and the groups, as passages can name them; no passage can name one that is too long for that."""
    listed = claims.get(groups_claim)
    groups = [listed] if isinstance(listed, str) else listed if isinstance(listed, list) else []
    names = {f"user:{claims['sub']}", *(f"group:{group}" for group in groups if isinstance(group, str))}
    return tuple(sorted(name for name in names if is_reader_name(name)))


def normal_collection(name: Any) -> str:
    """A collection's name, or the sign for all.

    Raises:
        ValueError: it is neither.
    """
    if name != ANY_COLLECTION and not re.fullmatch(COLLECTION, str(name)):
        raise ValueError(f"{name!r} is no name of a collection")
    return str(name)


def _build_principal(stored: StoredKey) -> Principal:
    return Principal(
        stored.name,
        stored.tenant,
        Grants.from_mapping(stored.scopes),
        judges_as=stored.judge,
        trusted=stored.trusted,
        llm_tokens=stored.llm_tokens,
        reads_as=tuple(stored.reads_as),
    )


def _require_principal(principal: Principal | None) -> Principal:
    if principal is None:
        raise UnauthorizedError("The access key is not known, has expired, or was revoked.")
    return principal
