"""Who makes a request, by the access key that it brings."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from app.core import access_keys
from app.core.access_keys import Grants
from app.errors import ConfigurationError, UnauthorizedError
from app.services.access.scope import LOCAL, Principal
from app.storage.access import keys
from app.storage.access.keys import StoredKey
from app.storage.database import Database

REMEMBERED = 10_000
"""Keys that a process remembers, those that are none included."""
BEARER = "bearer"


@dataclass(frozen=True, slots=True)
class _Known:
    principal: Principal | None
    until: float


class Authentication:
    """Tells whose a request is.

    A key is looked up once in ``remember_seconds``, so that a check costs a dictionary; a key that is revoked is
    found out as soon as that.
    """

    def __init__(
        self,
        database: Database,
        *,
        needed: bool,
        remember_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.needed = needed
        """Whether a request must bring a key."""
        self._database = database
        self._remember_seconds = remember_seconds
        self._clock = clock
        self._known: dict[bytes, _Known] = {}
        self._lock = threading.Lock()

    def quickly(self, authorization: str | None) -> Principal | None:
        """As ``principal``, without asking the database; None if that would take asking it.

        Raises:
            UnauthorizedError: as ``principal``.
        """
        key = self._presented(authorization)
        if key is None:
            return LOCAL
        known = self._known.get(access_keys.digest(key))
        if known is None or self._clock() >= known.until:
            return None
        return _checked(known.principal)

    def principal(self, authorization: str | None) -> Principal:
        """Whose a request with this header is.

        Raises:
            UnauthorizedError: it has no key where one is needed, or one that does not count.
            UnavailableError: Postgres is out of reach.
        """
        found = self.quickly(authorization)
        if found is not None:
            return found
        key = self._presented(authorization)
        digest = access_keys.digest(key or "")
        until = self._clock() + self._remember_seconds
        with self._database.read() as reader:
            stored = keys.counting(reader, digest)
        principal = None if stored is None else _principal(stored)
        if stored is not None and stored.expires_at is not None:
            until = min(until, self._clock() + max(0.0, stored.expires_at.timestamp() - time.time()))
        with self._lock:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[digest] = _Known(principal, until)
        return _checked(principal)

    def check_start(self, host: str) -> None:
        """See that whoever reaches the port does not reach everything.

        Raises:
            ConfigurationError: no key is needed nor there, and ``host`` can be reached from elsewhere.
        """
        if not self.needed:
            return
        with self._database.read() as reader:
            if keys.any_counts(reader):
                return
        raise ConfigurationError(
            f"ENGRAM_HOST is {host}, which others can reach, and there is no access key. Make the first one with "
            "`engram keygen NAME`, or say ENGRAM_ACCESS=keys to start without one, or ENGRAM_ACCESS=open to let "
            "everybody in who reaches the port."
        )

    def _presented(self, authorization: str | None) -> str | None:
        """The key that a header brings; None if there is none and none is needed.

        Raises:
            UnauthorizedError: none where one is needed, or what cannot be one.
        """
        scheme, _, token = (authorization or "").partition(" ")
        token = token.strip()
        if scheme.lower() != BEARER or (not self.needed and not token.startswith(access_keys.PREFIX)):
            # Where no key is needed, what others put into the header, as a proxy may, is none of ours.
            if self.needed:
                raise UnauthorizedError("Send an access key: `Authorization: Bearer engram_...`.")
            return None
        if not access_keys.is_key(token):
            raise UnauthorizedError("That is no access key: its checksum or its form is wrong.")
        return token


def _principal(stored: StoredKey) -> Principal:
    return Principal(
        stored.name,
        stored.tenant,
        Grants.of(stored.scopes),
        judges_as=stored.judge,
        trusted=stored.trusted,
        llm_tokens=stored.llm_tokens,
    )


def _checked(principal: Principal | None) -> Principal:
    if principal is None:
        raise UnauthorizedError("The access key is not known, has expired, or was revoked.")
    return principal
