"""The command that widens a question."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from engram.cli.http_client import Client
from engram.cli.service_commands import service_command
from engram.cli.terminal import ASK, CollectionOption, cli, say


@cli.command(rich_help_panel=ASK)
@service_command
def expand(
    client: Client,
    text: Annotated[str, typer.Argument(help="The question.")],
    collection: CollectionOption = "default",
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            help="prf (the default), or with an LLM: hyde, diver, decomposition, facets, contrastive, "
            "specification, rewriting, synonyms, step-back. May be given several times.",
        ),
    ] = None,
    passages: Annotated[int, typer.Option(min=1, max=20, help="Passages that prf and diver learn from.")] = 5,
) -> Iterator[Any]:
    """Widen a question: pieces of text to send on with a verdict, as its expansions."""
    chosen_methods = methods or ["prf"]
    body = {"query": text, "collection": collection, "methods": chosen_methods, "passages": passages}
    widened = client.send("POST", "/expand", json=body)
    yield widened
    width = max(map(len, chosen_methods))
    for method in chosen_methods:
        texts = [unit["text"] for unit in widened["expansions"] if unit["method"] == method]
        for piece in texts or ["(nothing found)"]:
            say(f"{method:<{width}}  {' '.join(piece.split())}")
