"""Commands that look: at the service, its collections, its passages."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from engram.cli.command_groups import collection_group, passage_group
from engram.cli.document_commands import format_readers
from engram.cli.http_client import Client, build_path
from engram.cli.service_commands import service_command
from engram.cli.terminal import (
    RUN,
    CollectionOption,
    UrlOption,
    cli,
    format_count,
    open_client,
    say,
    say_table,
    shorten,
)

SHOWN_CHECKS = ("postgres", "migrations", "redis", "workers", "encoder", "language", "llm")
HEADINGS = ("collection", "passages", "sentences", "entities", "keys of", "serving", "encoder")


@cli.command(rich_help_panel=RUN)
@service_command
def status(client: Client) -> Iterator[Any]:
    """Show whether the service can serve, on what, and whether workers keep up; exit code 1 if it cannot."""
    ready = client.send("GET", "/readyz")
    yield ready
    say(f"{client.base_url}: {ready['status']}")
    rows = [[name, "unknown" if ready[name] is None else str(ready[name])] for name in SHOWN_CHECKS]
    for name in ("verdict", "job"):
        waited = ready[f"oldest_{name}_seconds"]
        rows.append([f"oldest {name}", "none waits" if waited is None else f"waits for {waited:.0f} s"])
    if ready["disk_free_bytes"] is not None:
        rows.append(["disk", f"{ready['disk_free_bytes'] / 1e9:.1f} GB free"])
    say_table(rows, "<<")


@collection_group.command("list")
@service_command
def list_collections(
    client: Client,
    after: Annotated[str | None, typer.Option(help="Only those whose names come after this one.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Collections shown.")] = 100,
) -> Iterator[Any]:
    """List collections with what they hold."""
    page = client.send("GET", "/collections", params={"limit": limit, "after": after})
    yield page
    if page["collections"]:
        say_table([HEADINGS, *map(_cells, page["collections"])], "<>>><<<")
    elif after is None:
        say("There is no collection yet: engram ingest FILE -c NAME, or engram sample")
    if page["next_after"] is not None:
        say(f"more: engram collection list --after {page['next_after']}")


def _cells(collection: dict[str, Any]) -> tuple[str, ...]:
    counts = (str(collection[f"{kind}_count"]) for kind in ("passage", "sentence", "entity"))
    return (
        collection["name"],
        *counts,
        collection["key_building"],
        collection["serving"],
        collection["encoder"]["model"],
    )


@collection_group.command("delete")
def delete_collection(
    collection: Annotated[str, typer.Option("--collection", "-c", help="The collection's name.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    url: UrlOption = None,
) -> None:
    """Delete a collection with its passages and everything learned on them."""
    with open_client(url) as client:
        document = client.send("GET", build_path("collections", collection))
        count = format_count(document["passage_count"], "passage")
        if not yes:
            typer.confirm(f"Delete {collection} with {count} and everything learned on them?", abort=True, err=True)
        client.send("DELETE", build_path("collections", collection))
    say(f"{collection}: deleted, with {count}")


@passage_group.command("list")
@service_command
def list_passages(
    client: Client,
    after: Annotated[str | None, typer.Option(help="Only those whose ids come after this one.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Passages to list.")] = 20,
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """List the passages of a collection by their ids."""
    path = build_path("collections", collection, "passages")
    page = client.send("GET", path, params={"limit": limit, "after": after})
    yield page
    for passage in page["passages"]:
        title = f"{shorten(passage['title'], 60)}: " if passage["title"] else ""
        readers = format_readers([one for one in passage["readers"] or () if one is not None])
        say(f"{passage['id']}  {f'[{readers}] ' if readers else ''}{title}{shorten(passage['text'], 100)}")
    if page["next_after"] is not None:
        say(f"more: engram passage list -c {collection} --after {page['next_after']}")


@passage_group.command("show")
@service_command
def show_passages(
    client: Client,
    passage_ids: Annotated[list[str], typer.Argument(metavar="ID", help="Ids of passages.")],
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Show passages with their metadata and the ids of their sentences."""
    documents = [
        client.send("GET", build_path("passages", passage_id), params={"collection": collection})
        for passage_id in passage_ids
    ]
    yield {"passages": documents}
    for document in documents:
        _say_passage(document)


@passage_group.command("delete")
def delete_passages(
    passage_ids: Annotated[list[str], typer.Argument(metavar="ID", help="Ids of passages.")],
    collection: CollectionOption = "default",
    url: UrlOption = None,
) -> None:
    """Delete passages with everything learned on them."""
    with open_client(url) as client:
        for passage_id in passage_ids:
            client.send("DELETE", build_path("passages", passage_id), params={"collection": collection})
            say(f"{passage_id}: deleted")


def _say_passage(passage: dict[str, Any]) -> None:
    say(f"{passage['id']}  {passage['title'] or ''}".rstrip())
    for name, value in passage["metadata"].items():
        say(f"     {name}: {value}")
    for sentence in passage["sentences"]:
        say(f"     [{sentence['sentence_id']}] {sentence['text']}")
