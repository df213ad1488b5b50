"""``engram-mcp``: the tools on standard input and output, or over HTTP."""

import argparse
import os

from mcp.server.transport_security import TransportSecuritySettings

from engram_client import AsyncEngram
from engram_mcp.login import Login, connect_callers
from engram_mcp.server import server


def main() -> None:
    """Serve until the other side goes."""
    options = argparse.ArgumentParser(prog="engram-mcp", description="Engram as tools of an agent.")
    options.add_argument("--url", help="where the service is; ENGRAM_URL sets it as well")
    options.add_argument("--collection", default=os.environ.get("ENGRAM_COLLECTION", "default"))
    options.add_argument(
        "--ask-also",
        metavar="COLLECTION",
        action="append",
        help="another collection that the agent may ask and judge; repeatable; else ENGRAM_ASK_ALSO, with commas",
    )
    options.add_argument(
        "--as",
        dest="on_behalf_of",
        metavar="READER",
        action="append",
        help="whom the server asks for, as user:ana or group:hr; repeatable; else ENGRAM_AS, with commas",
    )
    options.add_argument("--http", metavar="PORT", type=int, help="serve streamable HTTP on this port")
    options.add_argument(
        "--login",
        metavar="ISSUER",
        help="over HTTP, ask each caller for a login at this identity provider, whose tokens the service takes",
    )
    options.add_argument(
        "--address",
        metavar="URL",
        help="where callers reach the server, for the login; else http://127.0.0.1:PORT/mcp",
    )
    arguments = options.parse_args()
    on_behalf_of = arguments.on_behalf_of or _read_names(os.environ.get("ENGRAM_AS", ""))
    others = arguments.ask_also or _read_names(os.environ.get("ENGRAM_ASK_ALSO", "")) or ()
    if arguments.login is not None:
        if arguments.http is None or on_behalf_of is not None:
            options.error("--login goes with --http, and not with --as or ENGRAM_AS: each caller asks alone")
        address = arguments.address or f"http://127.0.0.1:{arguments.http}/mcp"
        login = Login(arguments.login, address)
        tools = server(connect_callers(arguments.url, arguments.collection), login=login, others=others)
        # Each request has its own token, so none shares a session's. A page of a foreign site that reaches the port
        # has no token: names of hosts need no check.
        open_to_names = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        tools.run("streamable-http", port=arguments.http, stateless_http=True, transport_security=open_to_names)
        return
    # The client reads ENGRAM_ACCESS_KEY: a key on the command line would stand in every list of processes.
    tools = server(AsyncEngram(arguments.url, collection=arguments.collection), on_behalf_of, others=others)
    if arguments.http is None:
        tools.run("stdio")
    else:
        tools.run("streamable-http", port=arguments.http)


def _read_names(text: str) -> list[str] | None:
    """The names between commas; None if there is none."""
    return [name.strip() for name in text.split(",") if name.strip()] or None


if __name__ == "__main__":
    main()
