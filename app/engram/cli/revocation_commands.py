"""Commands that take verdicts back, and that prove what is learned to follow from those that count."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engram.cli.http_client import Client, ClientError, drop_unset
from engram.cli.query_commands import print_statuses, send_one_by_one, wait_for_success
from engram.cli.service_commands import service_command
from engram.cli.terminal import LEARNT, CollectionOption, cli, complain, say, say_json, settings
from engram.context import tenancy
from engram.context.errors import NotFoundError
from engram.core.text.words import count_noun

if TYPE_CHECKING:
    from engram.services.revocation.verification_findings import VerificationReport


@cli.command(rich_help_panel=LEARNT)
@service_command
def revoke(
    client: Client,
    events: Annotated[list[int] | None, typer.Argument(metavar="ID", help="Feedback ids.")] = None,
    judge_name: Annotated[str | None, typer.Option("--judge", help="Verdicts of this judge.")] = None,
    since: Annotated[str | None, typer.Option("--from", help="Received since, as 2026-05-01T00:00:00Z.")] = None,
    before: Annotated[str | None, typer.Option("--to", help="Received before that.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every verdict of the collection.")] = False,
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Revoke verdicts: what was learned becomes what it would be if they had never come."""
    options = {"judge": judge_name, "from": since, "to": before, "all": everything or None}
    criteria = drop_unset(options)
    if bool(events) == bool(criteria):
        raise ClientError("Say which verdicts: by their ids, or by --judge, --from, --to or --all.")
    done = (
        send_one_by_one(client, "DELETE", events, collection)
        if events
        else _revoke_many(client, criteria, collection)
    )
    yield done
    if events:
        print_statuses(done)
    else:
        say(f"{collection}: {done['updated']} revoked")


def _revoke_many(client: Client, criteria: dict[str, Any], collection: str) -> dict[str, Any]:
    accepted = client.send("POST", "/feedback/revoke", json=criteria | {"collection": collection})
    return wait_for_success(client, accepted, collection)


@cli.command(rich_help_panel=LEARNT)
def verify(
    collections: Annotated[
        list[str] | None,
        typer.Option(
            "--collection", "-c", help="A name, or TENANT/NAME; repeatable; all of all tenants by default."
        ),
    ] = None,
    differences: Annotated[
        int, typer.Option(min=1, max=100_000, help="Differences shown of each collection.")
    ] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print the reports as JSON.")] = False,
) -> None:
    """Replay the log of verdicts and compare everything learned with it; exit code 1 if it differs.

    States must agree to the bit, terms of weights and credits of expansions to 1e-9. Where there is no
    collection, nothing is proved, and the exit code is 1 as well.
    """
    from engram.composition.container import application
    from engram.services.auth.scope import LOCAL

    with application(settings()) as services, tenancy.allow_all_tenants():
        where = services.database.address
        reports = []
        every = services.revocation.verification.verify_all(differences)
        named = (
            services.revocation.verification.verify(
                services.auth.access.scope(own_name, replace(LOCAL, tenant=tenant or LOCAL.tenant)), differences
            )
            for tenant, _, own_name in (name.rpartition("/") for name in collections or ())
        )
        for report in named if collections else every:
            reports.append(report)
            if not as_json:
                _print(report)
    if not reports:
        raise NotFoundError(f"There is no collection to verify in {where}.")
    rows = sum(report.rows for report in reports)
    if as_json:
        documents = [asdict(report) | {"clean": report.clean} for report in reports]
        say_json({"database": where, "rows": rows, "collections": documents})
    else:
        say(f"checked {count_noun(rows, 'row')} of {count_noun(len(reports), 'collection')} in {where}")
    if not all(report.clean for report in reports):
        raise typer.Exit(1)


def _print(report: "VerificationReport") -> None:
    verdict = "follows from the log" if report.clean else count_noun(report.difference_count, "difference")
    say(f"{report.collection}: {verdict}")
    width = max(len(table.table) for table in report.tables)
    for table in report.tables:
        say(f"     {table.table:<{width}}  {table.rows:>9}  {table.checksum[:16]}")
    for difference in report.differences:
        complain(f"{report.collection}: {difference.table}: {difference.row}: {difference.reason}")
    if report.difference_count > len(report.differences):
        complain(f"{report.collection}: and {report.difference_count - len(report.differences)} more")
