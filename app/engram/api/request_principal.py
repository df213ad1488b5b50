"""Principal of a request, for code around the routes."""

from ipaddress import IPv6Address, ip_address

from starlette.types import Scope

from engram.api.authentication_middleware import PRINCIPAL
from engram.services.auth.scope import LOCAL, Principal


def asker(scope: Scope) -> Principal:
    """Whoever makes the request; without access control, whoever does."""
    found: Principal = scope.get(PRINCIPAL, LOCAL)
    return found


def client(scope: Scope) -> str | None:
    """The address that it came from, if it has one; of IPv6 the network that one customer is usually given."""
    host = (scope.get("client") or (None,))[0]
    if host is None:
        return None
    try:
        address = ip_address(host)
    except ValueError:
        return str(host)
    if not isinstance(address, IPv6Address):
        return str(address)
    mapped = address.ipv4_mapped
    return str(mapped) if mapped else f"{IPv6Address(int(address) >> 64 << 64)}/64"
