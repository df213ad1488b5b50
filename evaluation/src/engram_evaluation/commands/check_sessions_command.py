"""``engram check-sessions``: eighty questions whose right end is known, in sessions and by one query."""

from pathlib import Path
from typing import Annotated

import typer

from engram.cli.terminal import MEASURE, cli, err, say_json, say_table
from engram.runtime.local_engine import engine
from engram_evaluation.commands.dataset_names import load_dataset


@cli.command("check-sessions", rich_help_panel=MEASURE)
def check_sessions(
    half: Annotated[
        str, typer.Option(help="develop, kept-back or both; rules are changed by looking at `develop` alone.")
    ] = "both",
    sets: Annotated[
        Path, typer.Option(help="Folder of the evaluation sets support_forum and project_docs.")
    ] = Path("evaluation_sets"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print it as JSON, with what each question's rounds asked.")
    ] = False,
) -> None:
    """Count what sessions gain and lose against one query, and how often they end rightly."""
    from engram.config.settings import Settings
    from engram.context.errors import InvalidRequestError
    from engram_evaluation.harness import open_harness
    from engram_evaluation.run_progress import progress, steps, ticks
    from engram_evaluation.session_questions import (
        HALVES,
        QuestionOutcome,
        check,
        corpora,
        load_questions,
        summaries,
    )
    from engram_evaluation.session_questions import as_json as all_of_it

    named = half.replace("-", " ")
    if named not in (*HALVES, "both"):
        raise InvalidRequestError(f"--half is develop, kept-back or both, not {half!r}.")
    every = load_questions()
    chosen = [question for question in every if named in ("both", question.half)]
    datasets = corpora(every, load_dataset(Path("sample")), sets)
    outcomes: list[QuestionOutcome] = []
    with engine(Settings()) as (services, _), progress(err()) as bars:
        for name, dataset in datasets.items():
            questions = [question for question in chosen if question.corpus == name]
            harness = open_harness(services, dataset, ticks(bars, f"{name}: ingest"))
            outcomes += check(harness, questions, steps(bars, name, len(questions)))
    if as_json:
        say_json(all_of_it(outcomes))
        return
    headings = ["", "questions", "gains", "losses", "right stops", "wrong stops"]
    rows = [
        [one.name, *(str(count) for count in (one.questions, one.gains, one.losses, one.right, one.wrong))]
        for one in summaries(outcomes)
    ]
    say_table([headings, *rows], "<>>>>>")
