"""Commands that copy the database into a folder, prove the copy, and put it back."""

import json
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from dataclasses import replace as replace_fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli.process_commands import on_stop
from engram.cli.query_commands import progress_bar
from engram.cli.terminal import RUN, cli, complain, say, say_json, settings
from engram.context import tenancy
from engram.context.errors import ConfigurationError, NotFoundError
from engram.core.text.words import count_noun

if TYPE_CHECKING:
    from rich.progress import TaskID

    from engram.composition.container import Application
    from engram.config.settings import Settings
    from engram.services.erasure.erasure_service import ErasureReceipt
    from engram.wings.upkeep.services.backup_service import Manifest, Progress

    Receipts = dict[tuple[str, str], list[ErasureReceipt]]

LOCAL_TENANT = "local"
NO_REDIS = "redis://127.0.0.1:1/0"
ManifestOption = Annotated[
    bool, typer.Option("--json", help="Print the manifest, and whether it was verified, as JSON.")
]


@cli.command(rich_help_panel=RUN)
def backup(
    target: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to make it; nothing may be there.")],
    check: Annotated[
        bool, typer.Option("--check", help="Then restore it into a Postgres made for that, and verify it there.")
    ] = False,
    as_json: ManifestOption = False,
) -> None:
    """Copy the database into a folder while it is used; the copy is of one moment, and whole or not there."""
    from engram.composition.container import application
    from engram.composition.wings import check_wing_is_on
    from engram.wings.upkeep.parts import upkeep_of

    configured, stopping = settings(), threading.Event()
    check_wing_is_on("upkeep", configured.wings)
    with application(configured) as services, tenancy.allow_all_tenants(), progress_bars() as progress:
        on_stop(stopping.set)
        with services.maintenance.audit_log.on_command("backup", str(target)):
            manifest = upkeep_of(services).backup.backup(target, progress, stopping.is_set)
    if not as_json:
        say(f"{target}: {_describe_manifest(manifest)}")
    verified = _check(configured, target, as_json) if check else None
    if as_json:
        say_json({"folder": str(target), "manifest": asdict(manifest), "verified": verified})


@cli.command(rich_help_panel=RUN)
def restore(
    source: Annotated[Path, typer.Argument(metavar="FOLDER", help="A backup.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Remove what the database holds, in the same transaction.")
    ] = False,
    verify: Annotated[bool, typer.Option(help="Replay the log afterwards and compare what was learned.")] = True,
    erasures: Annotated[
        Path | None,
        typer.Option(help="Receipts as `engram erasures --json` printed them; by default those of the database."),
    ] = None,
    as_json: ManifestOption = False,
) -> None:
    """Put a backup back into the configured database; the API and all workers must be stopped."""
    from engram.composition.container import Application, servers
    from engram.composition.wings import check_wing_is_on
    from engram.storage.schema_revision import migrate
    from engram.wings.upkeep.services.backup_service import read

    configured = settings()
    check_wing_is_on("upkeep", configured.wings)
    read(source)  # what is no backup brings no database into being
    with servers(configured) as addresses:
        migrate(addresses.database_url)
        with closing(Application(configured, addresses)) as services, tenancy.allow_all_tenants():
            receipts = _list_receipts(services, erasures)
            manifest = _restore(services, source, replace=replace, verify=verify, quiet=as_json)
            repeated = _repeat_erasures(services, receipts, manifest.made_at)
            with services.maintenance.audit_log.on_command("restore", str(source)):
                pass
    if as_json:
        say_json(
            {
                "folder": str(source),
                "manifest": asdict(manifest),
                "verified": verify or None,
                "erasures_repeated": repeated,
            }
        )
    elif repeated:
        say(f"{repeated} later erasures are repeated by the first worker that starts")


def _list_receipts(services: "Application", file: Path | None) -> "Receipts":
    """(Tenant, collection) -> receipts of erasures, of a file or of the database that a backup is to replace."""
    from engram.services.erasure.erasure_service import read_receipts

    if file is None:
        return services.revocation.erasure.list_all_receipts()
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        return {
            (LOCAL_TENANT, page["collection"]): read_receipts(page["erasures"]) for page in document["collections"]
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{file} has no receipts of erasures ({error}).") from error


def _repeat_erasures(services: "Application", receipts: "Receipts", made_at: str) -> int:
    """Queue again what was erased after the backup was made; how many jobs."""
    from engram.services.auth.scope import LOCAL

    repeated = 0
    for (tenant, name), own in receipts.items():
        later = [receipt for receipt in own if receipt.erased_at >= datetime.fromisoformat(made_at)]
        with suppress(NotFoundError):  # the backup does not have the collection
            scope = services.auth.access.scope(name, replace_fields(LOCAL, tenant=tenant))
            repeated += len(services.revocation.erasure.repeat(scope, later))
    return repeated


def _check(configured: "Settings", source: Path, quiet: bool) -> bool:
    """Restore and verify elsewhere; it takes as much room as the database. True: all is as it should be."""
    from engram.composition.container import Application, Servers
    from engram.composition.server_addresses import require_local_servers
    from engram.storage.schema_revision import migrate

    with (
        tempfile.TemporaryDirectory(prefix="engram-check-", dir=source.absolute().parent) as folder,
        require_local_servers(configured).open_empty_postgres(
            configured, Path(folder) / "postgres"
        ) as database_url,
    ):
        migrate(database_url)
        with (
            closing(Application(configured, Servers(database_url, NO_REDIS))) as services,
            tenancy.allow_all_tenants(),
        ):
            _restore(services, source, replace=False, verify=True, quiet=quiet)
    return True


def _restore(services: "Application", source: Path, *, replace: bool, verify: bool, quiet: bool) -> "Manifest":
    from engram.wings.upkeep.parts import upkeep_of

    with progress_bars() as progress:
        manifest = upkeep_of(services).backup.restore(source, replace=replace, progress=progress)
        bad, count = [], len(manifest.collections)
        for number, report in enumerate(services.revocation.verification.verify_all(1) if verify else (), start=1):
            if not report.clean:
                bad.append(report.collection)
            progress("collections verified", number, count)
    if not quiet:
        say(f"{source}: restored, {_describe_manifest(manifest)}")
    for name in bad:
        complain(f"{name}: what was learned does not follow from its log; engram verify -c {name} says where")
    if bad:
        raise ConfigurationError(f"Of {count_noun(count, 'collection')} {len(bad)} differ from their log.")
    if verify and not quiet:
        say(f"{count_noun(count, 'collection')} verified: what was learned follows from the log")
    return manifest


def _describe_manifest(manifest: "Manifest") -> str:
    rows = sum(manifest.rows.values())
    return (
        f"{count_noun(len(manifest.collections), 'collection')}, {count_noun(rows, 'row')} in "
        f"{count_noun(len(manifest.rows), 'table')}, "
        f"{manifest.bytes / 2**20:.1f} MiB, made {manifest.made_at}"
    )


@contextmanager
def progress_bars() -> "Iterator[Progress]":
    """Progress as bars, one for each thing that is done."""
    with progress_bar() as bars:
        tasks: dict[str, TaskID] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield show
