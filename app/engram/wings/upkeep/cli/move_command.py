"""The commands that move a collection to another database, and forward requests to one."""

import threading
from contextlib import closing
from dataclasses import asdict
from typing import Annotated

import typer

from engram.cli.command_groups import collection_group
from engram.cli.process_commands import on_stop
from engram.cli.terminal import CollectionOption, say, say_json, settings
from engram.context import tenancy
from engram.wings.upkeep.cli.backup_commands import LOCAL_TENANT, NO_REDIS, progress_bars

TenantOption = Annotated[str, typer.Option("--tenant", help="Whose collection it is.")]


@collection_group.command("move")
def move_collection(
    to: Annotated[
        str, typer.Option("--to", metavar="DATABASE_URL", help="The other database, which has this schema.")
    ],
    collection: CollectionOption = "default",
    tenant: TenantOption = LOCAL_TENANT,
    forward_to: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The API that serves the other database: requests are forwarded to it."),
    ] = None,
    with_keys: Annotated[
        bool,
        typer.Option("--with-keys", help="Copy the tenant's access keys too, so that callers are known there."),
    ] = False,
    give_up: Annotated[bool, typer.Option("--give-up", help="End a move that is not over; it stays here.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """Move a collection with all that it learned to another database; after a stop, run it again to go on."""
    from engram.composition.container import Application, Servers, application
    from engram.composition.wings import check_wing_is_on
    from engram.wings.upkeep.services.collection_move import CollectionMoveService, Place

    configured, stopping = settings(), threading.Event()
    check_wing_is_on("upkeep", configured.wings)
    with (
        application(configured) as source,
        closing(Application(configured, Servers(to, NO_REDIS))) as target,
        tenancy.allow_all_tenants(),
        progress_bars() as progress,
    ):
        on_stop(stopping.set)
        service = CollectionMoveService(
            Place(source.database, source.revocation.verification),
            Place(target.database, target.revocation.verification),
            configured.maintenance_memory_mb,
        )
        keys = 0
        with source.maintenance.audit_log.on_command("move collection", f"{tenant}/{collection}"):
            if give_up:
                service.give_up(collection, tenant, progress)
                report = None
            else:
                report = service.move(
                    collection, tenant, forward_to=forward_to, progress=progress, should_stop=stopping.is_set
                )
                keys = service.copy_keys(tenant) if with_keys else 0
        where = target.database.address
    if as_json:
        say_json({"collection": collection, "database": where, "moved": report and asdict(report), "keys": keys})
    elif report is None:
        say(f"{collection}: stays here; what had arrived in {where} is removed there")
    else:
        copied = f"{sum(report.rows.values())} rows copied now, {report.verified} learned rows verified"
        copied += f", {keys} keys" if with_keys else ""
        say(f"{collection}: moved to {where}, {copied}")


@collection_group.command("forward")
def forward_collection(
    to: Annotated[
        str | None, typer.Option(metavar="URL", help="The API that serves the database with the collection.")
    ] = None,
    stop: Annotated[
        bool, typer.Option("--stop", help="Forward no more: the collection is not found then.")
    ] = False,
    collection: CollectionOption = "default",
    tenant: TenantOption = LOCAL_TENANT,
) -> None:
    """Forward requests about a collection that lives in another database to the API that serves it."""
    from engram.composition.container import application
    from engram.composition.wings import check_wing_is_on
    from engram.wings.upkeep.services.collection_move import forward, stop_forwarding

    if (to is None) != stop:
        raise typer.BadParameter("Say --to URL or --stop.")
    configured = settings()
    check_wing_is_on("upkeep", configured.wings)
    with (
        application(configured) as services,
        tenancy.allow_all_tenants(),
        services.maintenance.audit_log.on_command("forward collection", f"{tenant}/{collection}"),
    ):
        if to is None:
            stop_forwarding(services.database, collection, tenant)
            say(f"{collection}: forwarded no more")
        else:
            forward(services.database, collection, tenant, to)
            say(f"{collection}: forwarded to {to}")
