"""The command that fits the ranking weights every collection starts from."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from engram.cli.terminal import MEASURE, cli, err, say
from engram.runtime.local_engine import engine
from engram_evaluation.commands.dataset_names import load_dataset


@cli.command(rich_help_panel=MEASURE)
def fit(
    datasets: Annotated[
        list[Path], typer.Argument(help="Folders with corpus.jsonl, queries.jsonl and qrels.tsv, or 'sample'.")
    ],
    out: Annotated[Path, typer.Option(help="The file to write, for ENGRAM_RANKING_PRIOR.")] = Path(
        "ranking_prior.json"
    ),
    ranking: Annotated[
        Path | None, typer.Option(help="Keep the ranking weights of this file; fit only when an answer is enough.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="The first so many questions of each, over the passages that come with them."),
    ] = None,
) -> None:
    """Fit the weights that collections start from to data sets with known relevant passages.

    Each kind of corpus (encyclopedic, general) has weights of its own. A kind that none of the data sets is of
    keeps the shipped ones.
    """
    from engram.config.settings import Settings
    from engram.providers.ranking_prior import SHIPPED_FILE
    from engram_evaluation.dataset import cut_dataset
    from engram_evaluation.harness import open_harness
    from engram_evaluation.prior_files import build_general_priors, build_neutral_prior, load_ranking
    from engram_evaluation.run_progress import progress, steps, ticks
    from engram_evaluation.weight_fit import fit_kinds

    previous = None if ranking is None else load_ranking(ranking)
    loaded = [cut_dataset(load_dataset(folder), limit) for folder in datasets]
    with engine(Settings()) as (services, _), progress(err()) as bars:
        # A prior over other features must not stand in the way of its successor.
        services.models.priors = build_general_priors(build_neutral_prior())
        corpora = [
            (open_harness(services, dataset, ticks(bars, f"{dataset.name}: ingest")), dataset) for dataset in loaded
        ]
        shipped = json.loads(SHIPPED_FILE.read_text(encoding="utf-8"))
        content = fit_kinds(corpora, partial(steps, bars), shipped, previous)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    say(str(out))
