"""The command that gathers what several evaluations wrote into one page."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.console import cli, say


@cli.command()
def report(
    folders: Annotated[list[Path], typer.Argument(help="Folders that `engram evaluate --out` wrote into.")],
    out: Annotated[Path | None, typer.Option(help="The Markdown file to write; printed without it.")] = None,
) -> None:
    """Gather the reports of several evaluations, as of several data sets, into one Markdown page."""
    from app.evaluation.gather import gather

    page = gather(folders)
    if out is None:
        say(page.rstrip("\n"))
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page, encoding="utf-8")
    say(str(out))
