"""The command that fits the published stop of sessions."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from engram.cli.terminal import MEASURE, cli, err, say, say_table
from engram.runtime.local_engine import engine
from engram_evaluation.commands.dataset_names import load_dataset


@cli.command("fit-stop", rich_help_panel=MEASURE)
def fit_stop(
    datasets: Annotated[
        list[Path], typer.Argument(help="Folders with corpus.jsonl, queries.jsonl and qrels.tsv, or 'sample'.")
    ],
    limit: Annotated[int | None, typer.Option(min=1, help="Questions of each data set; all by default.")] = None,
    unit: Annotated[
        str, typer.Option(help="Whose pools to learn from after each round: sessions (of planner pool) or rfm-rag.")
    ] = "sessions",
    out: Annotated[Path, typer.Option(help="The file to write, for ENGRAM_SESSIONS_STOP_WEIGHTS.")] = Path(
        "stop_weights.json"
    ),
    check: Annotated[
        Path | None, typer.Option(help="Another data set: what R-Feedback tells of the rounds of its sessions.")
    ] = None,
) -> None:
    """Fit RFM-RAG's stop, by the configured cross-encoder if there is one, and when a pool is enough."""
    import numpy as np

    from engram.config.settings import Settings
    from engram.context.errors import InvalidRequestError
    from engram.wings.sessions.core.feedback_stop import STOP_FEATURES
    from engram.wings.sessions.parts import sessions_of
    from engram.wings.sessions.services.stop_weights import COSINE, StopWeights
    from engram_evaluation.harness import open_harness
    from engram_evaluation.prior_files import format_stop
    from engram_evaluation.run_progress import progress, steps, ticks
    from engram_evaluation.stop_fit import PLANNERS, Unit, collect_by_session, measure_rounds
    from engram_evaluation.stop_fit import fit_stop as fitted

    if unit not in get_args(Unit):
        raise InvalidRequestError(f"--unit is one of {', '.join(get_args(Unit))}, not {unit!r}.")
    loaded = [load_dataset(folder) for folder in datasets]
    checked = None if check is None else load_dataset(check)
    with engine(Settings()) as (services, _), progress(err()) as bars:
        relevance = sessions_of(services).relevance
        by = COSINE if relevance is None else relevance.name
        # Weights that were fitted by another second feature must not stand in the way of their successors.
        sessions_of(services).stop_weights = StopWeights(np.zeros(len(STOP_FEATURES)), by, ())
        corpora = [
            (open_harness(services, dataset, ticks(bars, f"{dataset.name}: ingest")), dataset) for dataset in loaded
        ]
        classifier, rounds = fitted(corpora, limit, partial(steps, bars), unit=cast("Unit", unit))
        if checked is not None:
            harness = open_harness(services, checked, ticks(bars, f"{checked.name}: ingest"))
            questions = list(checked.questions)[:limit]
            step = steps(bars, checked.name, len(questions))
            sessions = collect_by_session(harness, questions, step, PLANNERS[cast("Unit", unit)])
            rows = [
                [one.name, *("" if value is None else f"{value:.3f}" for value in (one.auc, one.changed, one.rose))]
                for one in measure_rounds(classifier, sessions)
            ]
            say_table([["", "AUC", "changed", "rose"], *rows], "<>>>")
    weights = StopWeights(classifier, by, tuple(dataset.name for dataset in loaded), rounds)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(format_stop(weights), indent=1) + "\n", encoding="utf-8")
    say(str(out))
