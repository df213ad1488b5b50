"""The command that shows what a sentence's memory went through."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from engram.cli.http_client import Client, build_path
from engram.cli.service_commands import service_command
from engram.cli.terminal import ASK, CollectionOption, cli, join_lines, quote_text, say, say_table, shorten

HEADINGS = ("feedback", "judge", "channel", "y", "gain", "residual", "perplexity", "similarity", "now", "question")


@cli.command(rich_help_panel=ASK)
@service_command
def memory(
    client: Client,
    sentence: Annotated[int, typer.Argument(min=1, metavar="ID", help="The sentence's id.")],
    query: Annotated[str | None, typer.Option(help="A text to tell how near the memory is to.")] = None,
    after: Annotated[int, typer.Option(min=0, help="Go on after this place in the order of application.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Verdicts shown, the earliest first.")] = 100,
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Show what is remembered of a sentence, and every verdict that made it so."""
    params = {"collection": collection, "after": after, "limit": limit, "query": query}
    document = client.send("GET", build_path("sentences", str(sentence), "memory"), params=params)
    yield document
    say(f"[{sentence}] {join_lines(document['text'])}")
    say(f"     of passage {document['passage_id']}")
    for channel in document["channels"]:
        near = ""
        if channel["similarity"] is not None:
            near = f", similarity {channel['similarity']:.3f} (began as {channel['base_similarity']:.3f})"
        say(
            f"{channel['channel']}: perplexity {channel['perplexity']:.3f}, "
            f"verdicts: {channel['update_count']}{near}"
        )
    for support in document["supports"]:
        say(
            f"supports with {support['support']:.3f} (perplexity {support['perplexity']:.3f}): "
            f"{quote_text(support['question'])}"
        )
    if document["support_count"] > len(document["supports"]):
        say(f"and {document['support_count'] - len(document['supports'])} more questions")
    rows = [_cells(event, move) for event in document["history"] for move in event["moves"]]
    if rows:
        say_table([HEADINGS, *rows], "<<<>>>>>><")
    if document["next_after"] is not None:
        say(f"more: --after {document['next_after']}")


def _cells(event: Mapping[str, Any], move: Mapping[str, Any]) -> tuple[str, ...]:
    now = "" if move["similarity_now"] is None else f"{move['similarity_now']:.3f}"
    return (
        str(event["feedback_id"]),
        shorten(event["judge"], 20),
        move["channel"],
        str(move["target"]),
        f"{move['gain']:.3f}",
        f"{move['residual']:+.3f}",
        f"{move['perplexity_before']:.3f} > {move['perplexity_after']:.3f}",
        f"{move['similarity_before']:.3f} > {move['similarity_after']:.3f}",
        now,
        quote_text(event["question"]),
    )
