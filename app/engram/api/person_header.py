"""A header in which a frontend names the person that it asks for (``ENGRAM_PERSON_HEADER``)."""

import os
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from starlette.datastructures import Headers
from starlette.types import Scope

from engram.context.errors import ConfigurationError, ForbiddenError
from engram.services.auth.scope import Principal


@dataclass(frozen=True, slots=True)
class PersonHeader:
    """The header's name, and the networks from which it is believed."""

    name: str
    networks: tuple[IPv4Network | IPv6Network, ...]

    @classmethod
    def from_setting(cls, text: str | None) -> "PersonHeader | None":
        """Read the setting; None if it is unset.

        Raises:
            ConfigurationError: it names no address, or what is none, or everybody may forge the address.
        """
        if text is None:
            return None
        name, *addresses = text.replace(",", " ").split() or [""]
        try:
            networks = tuple(ip_network(address) for address in addresses)
        except ValueError as error:
            raise ConfigurationError(f"ENGRAM_PERSON_HEADER: {error}.") from error
        if not networks:
            raise ConfigurationError("ENGRAM_PERSON_HEADER has to name addresses after the header.")
        if "*" in os.environ.get("FORWARDED_ALLOW_IPS", ""):
            raise ConfigurationError(
                "FORWARDED_ALLOW_IPS=* lets everybody claim an address of ENGRAM_PERSON_HEADER: name your proxies."
            )
        return cls(name, networks)

    def choose_principal(self, scope: Scope, principal: Principal) -> Principal:
        """Return the person whom a request names, as ``principal`` may ask for others; else ``principal`` itself.

        Raises:
            ForbiddenError: the header is not believed of this address, the principal may not ask for others, or
                the header names nobody.
        """
        named = Headers(scope=scope).getlist(self.name)
        if not named:
            return principal
        if not self._is_believed((scope.get("client") or ("",))[0]):
            raise ForbiddenError(f"The header {self.name} is not believed of this address.")
        if len(named) > 1:
            raise ForbiddenError(f"Send one header {self.name}.")
        return principal.name_person(f"user:{named[0].strip()}")

    def _is_believed(self, host: str) -> bool:
        try:
            address = ip_address(host)
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        return any(address in network for network in self.networks)
