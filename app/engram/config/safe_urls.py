"""Addresses to which secrets may go, as nobody on the way reads them."""

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_safe_url(url: str) -> bool:
    """Whether it is an https address, or one of this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    return host is not None and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens on ``host``."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
