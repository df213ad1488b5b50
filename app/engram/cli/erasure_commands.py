"""Commands that erase what is stored of a person, list what was erased, and export what is stored."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from engram.cli.http_client import Client, ClientError, build_path, drop_unset
from engram.cli.query_commands import wait_for_success
from engram.cli.service_commands import service_command
from engram.cli.terminal import RUN, cli, say, say_json_line, say_table, settings
from engram.context import tenancy

HEADINGS = ("collection", "job", "kind", "when", "removed", "backups that have it")
CollectionsOption = Annotated[
    str | None, typer.Option("--collection", "-c", help="Only this collection; by default all that you may read.")
]


@cli.command(rich_help_panel=RUN)
@service_command
def erase(
    client: Client,
    query: Annotated[str | None, typer.Option(help="Id of a query, with its session.")] = None,
    judge: Annotated[str | None, typer.Option(help="All that this judge said.")] = None,
    principal: Annotated[
        str | None, typer.Option(help="All that this principal asked, judged and clicked.")
    ] = None,
    since: Annotated[str | None, typer.Option("--from", help="What came since, as 2026-05-01T00:00:00Z.")] = None,
    before: Annotated[str | None, typer.Option("--to", help="What came before that.")] = None,
    anonymise: Annotated[
        bool, typer.Option("--anonymise", help="Keep what the verdicts taught, under a random judge.")
    ] = False,
    collection: CollectionsOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> Iterator[Any]:
    """Erase what is stored of a person, and take back what their verdicts taught."""
    span = drop_unset({"from": since, "to": before})
    chosen = drop_unset({"query": query, "judge": judge, "principal": principal, "span": span or None})
    if len(chosen) != 1:
        raise ClientError("Say what to erase: --query, --judge, --principal, or --from and --to.")
    kind, name = next(iter(chosen.items()))
    names = _choose_collections(client, collection)
    if not yes:
        described = (
            ", ".join(f"{key} {value}" for key, value in span.items()) if kind == "span" else f"{kind} {name}"
        )
        typer.confirm(f"Erase {described} from {', '.join(names)}? There is no way back.", abort=True, err=True)
    done = {each: _erase_in(client, each, kind, name, span, anonymise) for each in names}
    yield {"erased": done}
    for each, removed in done.items():
        say(f"{each}: {_describe(removed)}")


@cli.command(rich_help_panel=RUN)
@service_command
def erasures(client: Client, collection: CollectionsOption = None) -> Iterator[Any]:
    """List receipts of erasures: what was removed, and which backups still have it."""
    names = _choose_collections(client, collection)
    pages = [client.send("GET", build_path("collections", name, "erasures")) for name in names]
    yield {"collections": pages}
    rows = [_cells(page["collection"], receipt) for page in pages for receipt in page["erasures"]]
    if rows:
        say_table([HEADINGS, *rows], "<<<<<<")


@cli.command(rich_help_panel=RUN)
def export(
    principal: Annotated[str, typer.Option(help="Whose data: a principal's or a judge's name.")],
    tenant: Annotated[str, typer.Option(help="The principal's tenant.")] = "local",
) -> None:
    """Print all that is stored of a person, a row of a table in each line, as JSON."""
    from engram.composition.container import application

    with application(settings()) as services, tenancy.allow_all_tenants():
        for row in services.revocation.export.list_rows(tenant, principal):
            say_json_line(row)


def _erase_in(
    client: Client, collection: str, kind: str, name: Any, span: dict[str, Any], anonymise: bool
) -> dict[str, int]:
    path = {
        "query": lambda: build_path("queries", name),
        "judge": lambda: build_path("collections", collection, "judges", name),
        "principal": lambda: build_path("collections", collection, "principals", name),
        "span": lambda: build_path("queries"),
    }[kind]()
    where = span | {"anonymise": anonymise}
    if kind in {"query", "span"}:
        where["collection"] = collection
    job = wait_for_success(client, client.send("DELETE", path, params=where), collection)
    removed: dict[str, int] = job["result"]["removed"]
    return removed


def _choose_collections(client: Client, named: str | None) -> list[str]:
    if named is not None:
        return [named]
    return [one["name"] for one in client.list_rows("/collections", "collections", {})]


def _describe(removed: dict[str, int]) -> str:
    return ", ".join(f"{count} of {table}" for table, count in removed.items()) or "nothing was there"


def _cells(collection: str, receipt: dict[str, Any]) -> tuple[str, ...]:
    backups = ", ".join(backup["folder"] for backup in receipt["backups"])
    moment = receipt["erased_at"][:19].replace("T", " ")
    return (collection, receipt["id"], receipt["kind"], moment, _describe(receipt["removed"]), backups)
