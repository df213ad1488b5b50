"""The command that writes sessions as training data."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from engram.cli.terminal import MEASURE, cli, say
from engram.context.errors import InvalidRequestError, LlmNotConfiguredError
from engram.runtime.local_engine import engine
from engram_evaluation.commands.dataset_names import load_dataset

trajectories = typer.Typer(no_args_is_help=True, help="Sessions as data to train on.")
cli.add_typer(trajectories, name="trajectories", rich_help_panel=MEASURE)


@trajectories.command()
def export(
    dataset: Annotated[Path, typer.Argument(help="Folder of the data set that the sessions' questions are of.")],
    out: Annotated[Path, typer.Option("--out", help="File to write, one JSON object a line.")],
    collection: Annotated[
        str | None, typer.Option(help="Whose sessions; by default the one that `engram evaluate` made.")
    ] = None,
    shape: Annotated[
        str,
        typer.Option(
            help="steps: (state, action, observation, reward); sft: messages; grpo: prompt, completion, reward."
        ),
    ] = "steps",
    rewards: Annotated[
        str, typer.Option(help="gold: by gold sentences and accepted answers; llm: by the configured endpoint.")
    ] = "gold",
) -> None:
    """Write the sessions that came to a right answer as training data; those that did not are counted."""
    from engram.config.settings import Settings
    from engram.wings.sessions.parts import sessions_of
    from engram_evaluation.trajectory_export import SHAPES, ExportCounts, build_judge_reward, reward_by_gold
    from engram_evaluation.trajectory_export import export as exported

    if shape not in SHAPES:
        raise InvalidRequestError(f"--shape must be one of {', '.join(SHAPES)}, not {shape!r}.")
    if rewards not in {"gold", "llm"}:
        raise InvalidRequestError(f"--rewards must be gold or llm, not {rewards!r}.")
    loaded, settings = load_dataset(dataset), Settings()
    if rewards == "llm" and settings.llm_base_url is None:
        raise LlmNotConfiguredError("--rewards llm needs ENGRAM_LLM_BASE_URL to be set.")
    counted = ExportCounts()
    with engine(settings) as (services, _):
        scope = services.auth.access.scope(collection or f"evaluate-{loaded.name}")
        reward = (
            reward_by_gold
            if rewards == "gold" or services.models.llm is None
            else build_judge_reward(services.models.llm)
        )
        draft = out.with_suffix(f"{out.suffix}.part")
        out.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w", encoding="utf-8") as file:
            for line in exported(
                sessions_of(services).trajectories.read_all(scope), loaded, shape, reward, counted
            ):
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        os.replace(draft, out)
    right = counted.trajectories - counted.unknown - counted.wrong
    say(
        f"{out}: {counted.lines:,} lines of {right:,} trajectories; {counted.wrong:,} came to a wrong answer, "
        f"{counted.unknown:,} are of other questions"
    )
