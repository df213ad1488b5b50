"""Hosts as URLs name them. It imports nothing, since each start of the command line does."""


def format_host(host: str) -> str:
    """Return a host as it stands in a URL: an address of IPv6 in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
