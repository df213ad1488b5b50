"""The command that measures: retrieval, and what verdicts teach it."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from app import logs
from app.cli.console import cli, err, say
from app.settings import Settings

WIDTH = 120  # of the table where there is no terminal to ask


@cli.command()
def evaluate(
    dataset: Annotated[
        Path, typer.Argument(help="Folder with corpus.jsonl, queries.jsonl and qrels.tsv, or 'sample'.")
    ],
    protocol: Annotated[
        str, typer.Option(help="cold, same, similar, different or unrelated; docs/evaluation.md explains them.")
    ] = "cold",
    profile: Annotated[str, typer.Option(help="paper or default")] = "default",
    turns: Annotated[int, typer.Option(help="Rounds of verdicts.")] = 1,
    verdicts: Annotated[str, typer.Option(help="full: also names missed evidence; returned: does not.")] = "full",
    judge: Annotated[str, typer.Option(help="oracle or llm")] = "oracle",
    seed: Annotated[list[int] | None, typer.Option(help="Order of verdicts; several give means.")] = None,
    limit: Annotated[int | None, typer.Option(help="Judge at most so many questions (cold: ask).")] = None,
    sufficiency: Annotated[
        str | None, typer.Option(help="none, coverage or llm; the profile's own by default.")
    ] = None,
    folder: Annotated[Path, typer.Option("--out", help="Where reports and finished phases go.")] = Path(
        "evaluation"
    ),
) -> None:
    """Measure retrieval, and what verdicts teach it, on a data set; a stopped run goes on where it was."""
    from app import sample
    from app.composition import Application, servers
    from app.evaluation.dataset import load
    from app.evaluation.options import Options
    from app.evaluation.run import evaluate as run
    from app.storage.schema import migrate

    given: dict[str, Any] = {
        "protocol": protocol,
        "profile": profile,
        "turns": turns,
        "verdicts": verdicts,
        "judge": judge,
        "seeds": tuple(seed or [0]),
        "limit": limit,
        "sufficiency": sufficiency,
    }
    options = Options(**given)
    loaded = load(Path(sample.__path__[0]) if dataset == Path("sample") and not dataset.exists() else dataset)
    settings = Settings()
    logs.configure(settings.log_format, "WARNING")  # a line per query would bury the progress bars
    with servers(settings) as addresses:
        if settings.database_url is None:
            migrate(addresses.database_url)
        services = Application(settings, addresses)
        try:
            services.claim_embedding_space()
            report = run(services, loaded, options, folder, err)
        finally:
            services.close()
    console = Console()
    (console if console.is_terminal else Console(width=WIDTH)).print(report.table())
    say(f"{folder / options.slug(loaded.name)}.md and .json")
