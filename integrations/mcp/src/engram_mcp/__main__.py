"""``engram-mcp``: the tools on standard input and output, or over HTTP."""

import argparse
import os

from engram_client import AsyncEngram
from engram_mcp.server import server


def main() -> None:
    """Serve until the other side goes."""
    options = argparse.ArgumentParser(prog="engram-mcp", description="Engram as tools of an agent.")
    options.add_argument("--url", help="where the service is; ENGRAM_URL sets it as well")
    options.add_argument("--collection", default=os.environ.get("ENGRAM_COLLECTION", "default"))
    options.add_argument(
        "--as",
        dest="asked",
        metavar="READER",
        action="append",
        help="whom the server asks for, as user:ana or group:hr; repeatable; else ENGRAM_AS, with commas",
    )
    options.add_argument("--http", metavar="PORT", type=int, help="serve streamable HTTP on this port")
    arguments = options.parse_args()
    # The client reads ENGRAM_ACCESS_KEY: a key on the command line would stand in every list of processes.
    client = AsyncEngram(arguments.url, collection=arguments.collection)
    tools = server(client, arguments.asked or _read_readers(os.environ.get("ENGRAM_AS", "")))
    if arguments.http is None:
        tools.run("stdio")
    else:
        tools.run("streamable-http", port=arguments.http)


def _read_readers(text: str) -> list[str] | None:
    """The names between commas; None if there is none."""
    return [name.strip() for name in text.split(",") if name.strip()] or None


if __name__ == "__main__":
    main()
