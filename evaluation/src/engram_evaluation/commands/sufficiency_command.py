"""Command that measures how well sufficiency is predicted."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from engram.cli.terminal import MEASURE, cli, err, say, say_table
from engram.runtime.local_engine import engine
from engram_evaluation.commands.dataset_names import load_dataset
from engram_evaluation.commands.figure_tables import figures


@cli.command(rich_help_panel=MEASURE)
def sufficiency(
    dataset: Annotated[
        Path, typer.Argument(help="Folder with corpus.jsonl, queries.jsonl and qrels.tsv, or 'sample'.")
    ],
    foreign: Annotated[
        list[Path] | None,
        typer.Option(help="Another data set, whose questions this corpus cannot answer; repeatable."),
    ] = None,
    lacking: Annotated[
        int, typer.Option(min=0, help="Of so many questions one relevant passage goes, and they are asked again.")
    ] = 0,
    verdicts: Annotated[
        list[int] | None,
        typer.Option(min=0, help="Given to other questions than are then asked, 50; with --draws several numbers."),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            min=1, help="Ask each question once; verdicts by the arithmetic alone, on other questions in each draw."
        ),
    ] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Order of verdicts; several give means.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Ask at most so many questions.")] = None,
    prior: Annotated[
        Path | None, typer.Option(help="File with the weights to start from, as `engram fit` writes.")
    ] = None,
    folder: Annotated[Path, typer.Option("--out", help="Where the report goes.")] = Path("reports"),
) -> None:
    """Measure how well sufficiency is predicted on a data set: docs/ranking.md."""
    from engram.composition.models import NOISE
    from engram.config.settings import Settings
    from engram.context.errors import InvalidRequestError
    from engram_evaluation.harness import open_harness
    from engram_evaluation.run_progress import progress, steps, ticks
    from engram_evaluation.sufficiency_learning import lines, measure_drawn
    from engram_evaluation.sufficiency_measure import measure
    from engram_evaluation.verdict_givers import OracleJudge

    verdict_counts = verdicts or [50]
    if draws is None and len(verdict_counts) > 1:
        raise InvalidRequestError("Several numbers of verdicts go with --draws.")
    if draws is not None and (foreign or seed or lacking):
        raise InvalidRequestError("--foreign, --seed and --lacking do not go with --draws.")
    loaded, others = load_dataset(dataset), [load_dataset(other) for other in foreign or []]
    settings = Settings()
    if prior is not None:
        settings = settings.model_copy(update={"ranking_prior": prior})
    with engine(settings) as (services, _), progress(err()) as bars:
        harness, begin = open_harness(services, loaded, ticks(bars, f"{loaded.name}: ingest")), partial(steps, bars)
        kind = harness.scope.collection.corpus_kind
        if draws is not None:
            noise = NOISE.positive
            measured = measure_drawn(
                harness,
                loaded,
                services.models.priors.select_kind(kind),
                begin,
                verdicts=verdict_counts,
                draws=draws,
                noise=noise,
                limit=limit,
            )
        else:
            measured = measure(
                harness,
                loaded,
                others,
                OracleJudge("full"),
                begin,
                verdicts=verdict_counts[0],
                seeds=seed or [0],
                limit=limit,
                lacking=lacking,
            )
        prior_of_kind = services.models.priors.select_kind(kind)
        measured["prior"] = [prior_of_kind.sufficiency_name, *prior_of_kind.fitted]
    path = folder / "sufficiency" / f"{'draws-' if draws is not None else ''}{loaded.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    if draws is None:
        say_table([["figure", "value"], *figures(measured)], "<>")
    else:
        say_table(lines(measured), ">>>>>>")
    say(str(path))
