"""Commands that run a part of Engram in this process."""

import json
import os
import signal
import socket
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli.terminal import MEASURE, RUN, cli, say, say_json, settings
from engram.context import tenancy
from engram.context.errors import ConfigurationError

if TYPE_CHECKING:
    from engram.config.settings import Settings

NICENESS = 5
"""Added to a worker's: where processors are short, answers to questions come before jobs."""


@cli.command(rich_help_panel=RUN)
def serve(
    fd: Annotated[list[int] | None, typer.Option(hidden=True, help="Sockets it is handed that listen.")] = None,
) -> None:
    """Run the API; told to end, it finishes the requests in hand and accepts no more."""
    from engram.composition.container import application
    from engram.runtime.api_process import create_app
    from engram.runtime.http_server import Server, abandon_threads

    configured = settings()
    warn_if_open(configured)
    on_stop(sys.exit)  # until the server takes over
    with application(configured) as services:
        services.startup.check_settings()
        services.startup.check_encoders()
        services.maintenance.wing_clearing.check()
        services.auth.check()
        services.start_telemetry("api")
        listening = [socket.socket(fileno=each) for each in fd or ()]
        Server(create_app(services), configured).run(sockets=listening or None)
    abandon_threads()


@cli.command(rich_help_panel=RUN)
def worker(
    check: Annotated[
        bool, typer.Option("--check", help="Only see whether the worker of this machine lives; exit with 1 if not.")
    ] = False,
) -> None:
    """Apply verdicts, do jobs of every kind, let keys evolve, keep vector indexes healthy."""
    configured = settings()
    if check:
        from engram.runtime import heartbeat

        heartbeat.check(configured.worker_heartbeat_file)
        return
    from engram.composition.container import application
    from engram.runtime.worker import Worker

    with application(configured, consumer=f"worker-{uuid.uuid4()}") as services:
        os.nice(NICENESS)
        process = Worker(services)
        services.start_telemetry("worker", process.checks())
        on_stop(process.stop)
        process.run()


@cli.command(rich_help_panel=RUN)
def judge(
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="One collection; by default all take turns.")
    ] = None,
    once: Annotated[bool, typer.Option(help="Judge what is there and return.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print how many were judged as JSON.")] = False,
) -> None:
    """Let the configured LLM judge recent unjudged episodes and post feedback."""
    from engram.composition.container import application

    with application(settings()) as services, tenancy.allow_all_tenants():
        services.start_telemetry("judge")
        service = services.learning.llm_judge
        on_stop(service.stop)
        access = services.auth.access
        judged = service.run(
            lambda: access.list_scopes() if collection is None else [access.scope(collection)], once=once
        )
    if as_json:
        say_json({"collection": collection, "judged": judged})
    else:
        say(f"{judged} episodes judged")


@cli.command(rich_help_panel=RUN, context_settings={"ignore_unknown_options": True})  # for "-1"
def migrate(
    revision: Annotated[
        str,
        typer.Argument(
            metavar="[REVISION]",
            help="Alembic revision; -1 goes back by one; 'base' removes the schema with all data.",
        ),
    ] = "head",
    as_json: Annotated[bool, typer.Option("--json", help="Print where it is and its revision as JSON.")] = False,
) -> None:
    """Bring the database's schema to a revision."""
    if revision.startswith("-") and not revision[1:].isdecimal():
        raise typer.BadParameter(f"no such option, and no number of revisions to go back by: {revision}")
    from engram.composition.container import servers
    from engram.storage.database import describe_address
    from engram.storage.schema_revision import migrate as run

    with servers(settings()) as addresses:
        reached = run(addresses.database_url, revision)
        where = describe_address(addresses.database_url)
    if as_json:
        say_json({"database": where, "revision": reached})
    else:
        say(f"{where}: {'no schema' if reached is None else f'the schema is at revision {reached}'}")


@cli.command(rich_help_panel=MEASURE)
def openapi(
    path: Annotated[Path, typer.Argument(help="Where the document is kept.")] = Path("openapi/openapi.json"),
    check: Annotated[bool, typer.Option("--check", help="Only see whether the file is up to date.")] = False,
) -> None:
    """Export the OpenAPI document."""
    from engram.runtime.api_process import create_app

    document = json.dumps(create_app(None).openapi(), indent=2, sort_keys=True) + "\n"
    if check:
        if not path.exists() or path.read_text(encoding="utf-8") != document:
            raise ConfigurationError(f"{path} is out of date; run `engram openapi`.")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document, encoding="utf-8")


def warn_if_open(configured: "Settings") -> None:
    """Warn that others can reach the API and need no access key."""
    import structlog

    if configured.access == "open" and not configured.on_loopback:
        structlog.get_logger(__name__).warning(
            "whoever reaches this port may read, change and delete everything: no access key is needed",
            host=configured.host,
            port=configured.port,
            instead="ENGRAM_ACCESS=auto, ENGRAM_HOST=127.0.0.1, or a proxy that authenticates before it",
        )


def on_stop(stop: Callable[[], None]) -> None:
    """Call ``stop`` instead of ending at once when the process is told to end."""

    def handle(_signal: int, _frame: FrameType | None) -> None:
        stop()

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)
