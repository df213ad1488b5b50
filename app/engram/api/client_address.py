"""The address that a request came from."""

from ipaddress import IPv6Address, ip_address

from starlette.types import Scope


def client_address(scope: Scope) -> str | None:
    """Return the address, if it has one; of IPv6 the network that one customer is usually given."""
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
