"""Commands that look: at the service, its collections, its passages."""

from typing import Annotated, Any

import typer

from engram.cli.explanation_commands import short
from engram.cli.http_client import path_of
from engram.cli.terminal import (
    RUN,
    STOCK,
    CollectionOption,
    JsonOption,
    UrlOption,
    base_url,
    cli,
    client_of,
    say,
    say_json,
    say_table,
)

SHOWN = ("postgres", "migrations", "redis", "workers", "encoder", "language", "llm")
HEADINGS = ("collection", "passages", "sentences", "entities", "keys of", "serving", "encoder")


@cli.command(rich_help_panel=RUN)
def status(url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Show whether the service can serve, on what, and whether workers keep up; exit code 1 if it cannot."""
    address = base_url(url)
    with client_of(url) as client:
        ready = client.send("GET", "/readyz")
    if as_json:
        say_json(ready)
        return
    say(f"{address}: {ready['status']}")
    rows = [[name, "unknown" if ready[name] is None else str(ready[name])] for name in SHOWN]
    for name in ("verdict", "job"):
        waited = ready[f"oldest_{name}_seconds"]
        rows.append([f"oldest {name}", "none waits" if waited is None else f"waits for {waited:.0f} s"])
    if ready["disk_free_bytes"] is not None:
        rows.append(["disk", f"{ready['disk_free_bytes'] / 1e9:.1f} GB free"])
    say_table(rows, "<<")


@cli.command(rich_help_panel=STOCK)
def collections(
    after: Annotated[str | None, typer.Option(help="Only those whose names come after this one.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Collections shown.")] = 100,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """List collections with what they hold."""
    where: dict[str, Any] = {"limit": limit} | ({} if after is None else {"after": after})
    with client_of(url) as client:
        page = client.send("GET", "/collections", params=where)
    if as_json:
        say_json(page)
        return
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


@cli.command(rich_help_panel=STOCK)
def passages(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="Their ids; a page of all without.")
    ] = None,
    after: Annotated[str | None, typer.Option(help="Only those whose ids come after this one.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Passages listed.")] = 20,
    collection: CollectionOption = "default",
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """List a collection's passages by their ids, or show some with their metadata and their sentences' ids."""
    with client_of(url) as client:
        if names:
            where = {"collection": collection}
            documents = [client.send("GET", path_of("passages", name), params=where) for name in names]
            page: dict[str, Any] = {"passages": documents, "next_after": None}
        else:
            asked: dict[str, Any] = {"limit": limit} | ({} if after is None else {"after": after})
            page = client.send("GET", path_of("collections", collection, "passages"), params=asked)
    if as_json:
        say_json(page)
        return
    for passage in page["passages"]:
        if names:
            _say_passage(passage)
        else:
            title = f"{short(passage['title'], 60)}: " if passage["title"] else ""
            say(f"{passage['id']}  {title}{short(passage['text'], 100)}")
    if page["next_after"] is not None:
        say(f"more: engram passage list -c {collection} --after {page['next_after']}")


def _say_passage(passage: dict[str, Any]) -> None:
    say(f"{passage['id']}  {passage['title'] or ''}".rstrip())
    for name, value in passage["metadata"].items():
        say(f"     {name}: {value}")
    for sentence in passage["sentences"]:
        say(f"     [{sentence['sentence_id']}] {sentence['text']}")
