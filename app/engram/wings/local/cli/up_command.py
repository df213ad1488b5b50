"""``engram up``: everything on this machine."""

import sys
from typing import Annotated

import typer

from engram.cli.terminal import RUN, cli, settings


@cli.command(rich_help_panel=RUN)
def up(
    sample: Annotated[bool, typer.Option("--sample", help="Ingest the sample corpus and print a tour.")] = False,
    api: Annotated[int, typer.Option(min=1, max=256, help="API processes, which share the port.")] = 1,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Workers, which share verdicts and jobs.")] = 1,
) -> None:
    """Start everything on this machine: Postgres, Redis, migrations, API, worker. Ctrl-C stops it all."""
    from engram.wings.local.runtime import launcher

    sys.exit(launcher.run(settings(), sample=sample, crew=launcher.ProcessCounts(api, workers)))
