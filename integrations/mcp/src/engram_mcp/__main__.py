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
    options.add_argument("--http", metavar="PORT", type=int, help="serve streamable HTTP on this port")
    arguments = options.parse_args()
    # The client reads ENGRAM_ACCESS_KEY: a key on the command line would stand in every list of processes.
    client = AsyncEngram(arguments.url, collection=arguments.collection)
    tools = server(client)
    if arguments.http is None:
        tools.run("stdio")
    else:
        tools.run("streamable-http", port=arguments.http)


if __name__ == "__main__":
    main()
