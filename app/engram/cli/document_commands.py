"""Commands about documents: which a collection has, which replaces another, who reads them, and an end to one."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from engram.cli.command_groups import document_group
from engram.cli.http_client import Client, ClientError, build_path
from engram.cli.service_commands import service_command
from engram.cli.terminal import (
    CollectionOption,
    JsonOption,
    UrlOption,
    format_count,
    open_client,
    say,
    say_json,
    say_table,
)
from engram.core.auth.reader_names import parse_readers

HEADINGS = ("document", "passages", "pages", "imported", "valid from", "until", "replaced by", "readers", "notes")


@document_group.command("list")
@service_command
def list_documents(
    client: Client,
    prefix: Annotated[str, typer.Option(help="Only those whose source begins so.")] = "",
    after: Annotated[str | None, typer.Option(help="Only those whose sources come after this one.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Documents to list.")] = 100,
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """List the documents of a collection by their sources."""
    where = {"collection": collection, "prefix": prefix, "after": after, "limit": limit}
    page = client.send("GET", "/documents", params=where)
    yield page
    if page["documents"]:
        say_table([HEADINGS, *map(_cells, page["documents"])], "<>><<<<<<")
    if page["next_after"] is not None:
        say(f"more: engram document list -c {collection} --after {page['next_after']}")


@document_group.command("set")
@service_command
def set_version(
    client: Client,
    source: Annotated[str, typer.Argument(help="The document's source.")],
    replaced_by: Annotated[str | None, typer.Option(help="Source of the document that replaces it.")] = None,
    not_replaced: Annotated[
        bool, typer.Option("--not-replaced", help="Nothing replaces it, whatever texts state.")
    ] = False,
    valid_from: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Since when it holds, as 2026-05-01.")
    ] = None,
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Say which document replaces another, or that none does, and since when it holds."""
    if (replaced_by is not None) + not_replaced + (valid_from is not None) == 0 or (replaced_by and not_replaced):
        raise typer.BadParameter("give one of --replaced-by and --not-replaced, or --valid-from, or both")
    change: dict[str, Any] = {}
    if replaced_by is not None or not_replaced:
        change["replaced_by"] = replaced_by
    if valid_from is not None:
        change["valid_from"] = valid_from.date().isoformat()
    yield client.send("PATCH", build_path("documents", source), params={"collection": collection}, json=change)
    if replaced_by is not None:
        say(f"{source}: replaced by {replaced_by}")
    if not_replaced:
        say(f"{source}: not replaced")
    if valid_from is not None:
        say(f"{source}: valid from {change['valid_from']}")


@document_group.command("readers")
def set_readers(
    readers: Annotated[str, typer.Argument(help="Who may read them: user:ana,group:hr, everyone or nobody.")],
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE...", help="The documents' sources; one that ends in / is all below it."),
    ],
    collection: CollectionOption = "default",
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say who may read documents: of each, the passages that you see. Each is reported as it is done."""
    try:
        parsed = parse_readers(readers)
    except ValueError as error:
        raise typer.BadParameter(f"{error}") from error
    names = None if parsed is None else list(parsed)
    done: list[Any] = []
    try:
        with open_client(url) as client:
            for source in (found for named in sources for found in _find_sources(client, collection, named)):
                where, body = {"collection": collection}, {"readers": names}
                done.append(client.send("PATCH", build_path("documents", source), params=where, json=body))
                if not as_json:
                    passages = format_count(done[-1]["changed"], "passage")
                    say(f"{source}: {passages} changed to be read by {format_readers([names])}")
    finally:
        if as_json:
            say_json(done)


def _find_sources(client: Client, collection: str, named: str) -> Iterator[str]:
    """Find the documents below a source that ends in /, or the one that is named.

    Raises:
        ClientError: no document is below it.
    """
    if not named.endswith("/"):
        yield named
        return
    is_empty = True
    for document in client.list_rows("/documents", "documents", {"collection": collection, "prefix": named}):
        is_empty = False
        yield document["source"]
    if is_empty:
        raise ClientError(f"No document of collection {collection!r} is below {named!r}.")


@document_group.command("delete")
@service_command
def delete_documents(
    client: Client,
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...", help="The documents' sources.")],
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Delete documents with their passages and everything learned on them."""
    for source in sources:
        client.send("DELETE", build_path("documents", source), params={"collection": collection})
    yield {"deleted": sources}
    for source in sources:
        say(f"{source}: deleted")


def format_readers(lists: Sequence[list[str] | None]) -> str:
    """Write lists of readers; None is everyone."""
    return " / ".join("everyone" if one is None else ", ".join(one) or "nobody" for one in lists)


def _cells(document: dict[str, Any]) -> tuple[str, ...]:
    pages = "" if document["pages"] is None else str(document["pages"])
    imported = document["imported_at"][:19].replace("T", " ")
    readers = format_readers(document["readers"] or ())
    notes = "; ".join(document["notes"])
    since, end, successor = (document[field] or "" for field in ("valid_from", "valid_until", "replaced_by"))
    return document["source"], str(document["passages"]), pages, imported, since, end, successor, readers, notes
