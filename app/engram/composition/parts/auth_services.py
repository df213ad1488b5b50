"""Access to the service: collections by name, access keys, quotas and rates."""

from collections.abc import Callable
from dataclasses import dataclass, field

from engram.composition.locked_property import locked_property
from engram.composition.models import Models
from engram.composition.servers import Connections
from engram.config.settings import Settings
from engram.providers.jwt_tokens import Tokens
from engram.services.auth.access_key_service import KeysService
from engram.services.auth.authentication import Authentication
from engram.services.auth.login import LoginService
from engram.services.auth.quotas import QuotaService
from engram.services.auth.rate_limits import Rates
from engram.services.auth.scope import AccessService
from engram.services.replicas.replica_reads import Reads
from engram.storage import row_security
from engram.storage.auth.tenants import Quotas

REMOTE_REQUEST_RATE = 20.0
"""Requests a second of each caller, where none is configured and other machines can reach the API."""

REQUEST_BURST = 100
"""Requests that a caller may send at once."""
ACCESS_CACHE_SECONDS = 5.0
"""How long a process goes by what it knows of an access key while Redis is down."""
QUOTAS = Quotas(passages=1_000_000, collections=1_000, keys=1_000, sessions=10_000, facts=100_000)
"""Quotas of tenants other than `local` for which `engram access tenant` sets no others."""


@dataclass(frozen=True, eq=False)
class AuthServices:
    """Services that decide who may do what, and how often. Each is made when first used."""

    settings: Settings
    connections: Connections
    models: Models
    _caches: list[Callable[[], None]] = field(default_factory=list, init=False)

    @locked_property
    def access(self) -> AccessService:
        """Lookup of collections by name."""
        return AccessService(self.connections.database)

    @locked_property
    def authentication(self) -> Authentication:
        """Authentication of requests."""
        return self._authenticate_by(self.models.tokens)

    def _authenticate_by(self, tokens: Tokens | None) -> Authentication:
        settings = self.settings
        needed = settings.access == "keys" or (settings.access == "auto" and not settings.on_loopback)
        authentication = Authentication(
            self.connections.database,
            needed=needed,
            remember_seconds=ACCESS_CACHE_SECONDS,
            tokens=tokens,
            groups_claim=settings.jwt_groups_claim,
        )
        self._caches.append(authentication.forget)
        return authentication

    @locked_property
    def login(self) -> LoginService | None:
        """Login of people at the identity provider, or None."""
        keys, client = self.models.provider_keys, self.models.login_client
        if keys is None or client is None:
            return None
        tokens = Tokens(keys, client.id, is_client=True)
        return LoginService(tokens, client, self._authenticate_by(tokens))

    @locked_property
    def access_keys(self) -> KeysService:
        """Creation and revocation of access keys."""
        return KeysService(self.connections.database, self.announce_change)

    @locked_property
    def quotas(self) -> QuotaService:
        """Quotas of tenants."""
        return QuotaService(self.connections.database, remember_seconds=ACCESS_CACHE_SECONDS, defaults=QUOTAS)

    @locked_property
    def rates(self) -> Rates | None:
        """Limits of each caller's request rate, or None."""
        settings = self.settings
        rate = settings.rate_per_second
        if rate is None:
            rate = 0.0 if settings.on_loopback else REMOTE_REQUEST_RATE
        return Rates(self.connections.buckets, rate, REQUEST_BURST) if rate else None

    @locked_property
    def reads(self) -> Reads:
        """Reads on the replica, if there is one."""
        return Reads(self.connections.database, self.connections.positions)

    def follow_changes(self) -> Callable[[], None]:
        """Drop cached access keys whenever a process announces a change; return the function that ends this."""
        return self.connections.notices.listen(self._forget)

    def announce_change(self) -> None:
        """Drop cached access keys in every process."""
        self._forget()
        self.connections.notices.tell()

    def _forget(self) -> None:
        for forget in self._caches:
            forget()

    def check(self) -> None:
        """Check that access keys and row security protect the API as configured.

        Raises:
            ConfigurationError: clients on other machines would have access without a key, or row security fails.
        """
        if self.settings.access == "auto":
            self.authentication.check_start(self.settings.host)
        if self.settings.row_security:
            row_security.check(self.connections.database)
