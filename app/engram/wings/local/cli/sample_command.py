"""``engram sample``: the sample corpus, and a tour of it."""

import io

import typer

from engram.cli.ingest_commands import ingest_stream, is_complete
from engram.cli.terminal import STOCK, JsonOption, UrlOption, base_url, cli, open_client, say, say_json


@cli.command(rich_help_panel=STOCK)
def sample(url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Ingest the sample corpus into a running service and print a tour of it."""
    from engram.wings.local.sample import COLLECTION, corpus
    from engram.wings.local.sample.tour import tour

    address = base_url(url)
    with open_client(url) as client:
        sent = io.BytesIO(corpus())
        job = ingest_stream(client, sent, "sample corpus", COLLECTION, quiet=as_json)
    if as_json:
        say_json({"jobs": [job]})
    else:
        say(tour(address))
    if not is_complete(job):
        raise typer.Exit(1)
