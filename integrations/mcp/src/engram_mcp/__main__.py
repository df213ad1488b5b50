"""``engram-mcp``: the tools on standard input and output, or over HTTP."""

import argparse
import os

from engram_client import AsyncEngram
from engram_mcp.server import server


def main() -> None:
    """Serve until the other side goes."""
    options = argparse.ArgumentParser(prog="engram-mcp", description="Engram as tools of an agent.")
    options.add_argument("--url", default=os.environ.get("ENGRAM_URL", "http://127.0.0.1:8000"))
    options.add_argument("--collection", default=os.environ.get("ENGRAM_COLLECTION", "default"))
    options.add_argument("--http", metavar="PORT", type=int, help="serve streamable HTTP on this port")
    arguments = options.parse_args()
    # A key on the command line would stand in every list of processes.
    client = AsyncEngram(arguments.url, collection=arguments.collection, key=os.environ.get("ENGRAM_ACCESS_KEY"))
    tools = server(client, url=arguments.url)
    if arguments.http is None:
        tools.run("stdio")
    else:
        tools.run("streamable-http", port=arguments.http)


if __name__ == "__main__":
    main()
