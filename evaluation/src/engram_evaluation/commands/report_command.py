"""The command that gathers what several evaluations wrote into one page."""

from pathlib import Path
from typing import Annotated

import typer

from engram.cli.terminal import MEASURE, cli, say


@cli.command(rich_help_panel=MEASURE)
def report(
    folders: Annotated[list[Path], typer.Argument(help="Folders that `engram evaluate --out` wrote into.")],
    out: Annotated[
        Path | None, typer.Option(help="The Markdown file to write; without it and --picture it is printed.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="The SVG file to write: the charts of protocol unseen.")
    ] = None,
) -> None:
    """Gather the reports of several evaluations, as of several data sets, into one page."""
    from engram_evaluation.report_page import gather
    from engram_evaluation.unseen_charts import draw_unseen

    if picture is not None:
        _write(picture, draw_unseen(folders))
    if out is not None:
        _write(out, gather(folders))
    elif picture is None:
        say(gather(folders).rstrip("\n"))


def _write(file: Path, page: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page, encoding="utf-8")
    say(str(file))
