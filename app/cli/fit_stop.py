"""The command that fits the published stop of sessions."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from app.cli.console import MEASURE, cli, err, say
from app.cli.datasets import load_dataset
from app.cli.engine import engine


@cli.command("fit-stop", rich_help_panel=MEASURE)
def fit_stop(
    datasets: Annotated[
        list[Path], typer.Argument(help="Folders with corpus.jsonl, queries.jsonl and qrels.tsv, or 'sample'.")
    ],
    limit: Annotated[int | None, typer.Option(min=1, help="Questions of each data set; all by default.")] = None,
    out: Annotated[Path, typer.Option(help="The file to write, for ENGRAM_STOP_WEIGHTS.")] = Path(
        "stop_weights.json"
    ),
) -> None:
    """Fit RFM-RAG's stop of sessions, by the configured cross-encoder if there is one."""
    import numpy as np

    from app.core.feedback_stop import FEATURES
    from app.evaluation.fit_stop import fit_stop as fitted
    from app.evaluation.harness import open_harness
    from app.evaluation.progress import progress, steps, ticks
    from app.providers.stop import COSINE, StopWeights, stop_as_json
    from app.settings import Settings

    loaded = [load_dataset(folder) for folder in datasets]
    with engine(Settings()) as (services, _), progress(err()) as bars:
        by = COSINE if services.relevance is None else services.relevance.name
        # Weights that were fitted by another second feature must not stand in the way of their successors.
        services.stop_weights = StopWeights(np.zeros(len(FEATURES)), by, ())
        corpora = [
            (open_harness(services, dataset, ticks(bars, f"{dataset.name}: ingest")), dataset) for dataset in loaded
        ]
        mean = fitted(corpora, limit, partial(steps, bars))
    weights = StopWeights(mean, by, tuple(dataset.name for dataset in loaded))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(stop_as_json(weights), indent=1) + "\n", encoding="utf-8")
    say(str(out))
