"""The command that asks under two arms."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from engram.cli.http_client import Client, ClientError
from engram.cli.metadata_filters import FilterOption, as_filter
from engram.cli.service_commands import service_command
from engram.cli.terminal import ASK, CollectionOption, cli, say, say_table, shorten

COLUMN = 46
"""Characters of one of two columns, so that a line has less than 100."""
ARM = ("memory", "profile", "strategy")


@cli.command(rich_help_panel=ASK)
@service_command
def compare(
    client: Client,
    text: Annotated[str, typer.Argument(help="The question.")],
    a: Annotated[str, typer.Option(help="An arm: memory=off,profile=default,strategy=graph, or some of it.")] = (
        "memory=off"
    ),
    b: Annotated[str, typer.Option(help="The other arm.")] = "memory=read",
    filters: FilterOption = None,
    top_k: Annotated[int, typer.Option(min=1, max=100, help="Passages shown of each.")] = 5,
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Ask a question under two arms and show the answers side by side; nothing is kept of it."""
    body = {
        "query": text,
        "collection": collection,
        "top_k": top_k,
        "a": _arm(a),
        "b": _arm(b),
        "filter": as_filter(filters),
    }
    compared = client.send("POST", "/query/compare", json=body)
    yield compared
    left, right = (_column(compared, one, other) for one, other in (("a", "b"), ("b", "a")))
    rows = max(len(left), len(right))
    padded = ([*column, *[""] * (rows - len(column))] for column in (left, right))
    say_table([(f"{one:<{COLUMN}}", other) for one, other in zip(*padded, strict=True)], "<<")
    for row in compared["passages"]:
        title = f"{shorten(row['title'], COLUMN)}: " if row["title"] else ""
        name = shorten(row["passage_id"], COLUMN)
        say(f"{name}  {shorten(title + row['text'], 2 * COLUMN - len(name))}")


def _arm(option: str) -> dict[str, str]:
    """ "memory=off,strategy=graph" as the service takes it."""
    parts = dict(part.strip().partition("=")[::2] for part in option.split(",") if part.strip())
    if not all(name in ARM and value for name, value in parts.items()):
        raise ClientError(f"{option!r} is no arm: say it as memory=off,profile=default,strategy=graph.")
    return parts


def _column(compared: Mapping[str, Any], arm: str, other_arm: str) -> list[str]:
    """One arm: what it is and read, and its passages with their ranks in the other arm."""
    side = compared[arm]
    read = side["read"]
    lines = [
        f"{arm}: memory {side['memory']}, profile {side['profile']}, {side['strategy']}",
        f"hops: {side['hops']}, {side['stop_reason']}; {side['timings']['total_ms']:.1f} ms",
        f"recalled {read['recalled']}, moved {read['moved']}, keys {read['key_generation']}",
        "",
    ]
    ranked = [
        row for row in compared["passages"] if (row[f"rank_{arm}"] or compared["top_k"] + 1) <= compared["top_k"]
    ]
    for row in sorted(ranked, key=lambda row: row[f"rank_{arm}"]):
        rank, elsewhere = row[f"rank_{arm}"], row[f"rank_{other_arm}"]
        change = (
            ""
            if elsewhere == rank
            else f"  (not in {other_arm})"
            if elsewhere is None
            else f"  ({elsewhere} in {other_arm})"
        )
        score = f"{row[f'score_{arm}']:.3f}"
        room = COLUMN - len(f"{rank:>3}.   {score}{change}")
        lines.append(f"{rank:>3}. {shorten(row['passage_id'], room)}  {score}{change}")
    return [line[:COLUMN] for line in lines]
