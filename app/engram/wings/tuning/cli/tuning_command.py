"""The command that shows and steers the tuning of a collection's question encoder."""

import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from engram.cli.http_client import Client, ClientError, build_path
from engram.cli.service_commands import service_command
from engram.cli.terminal import LEARNT, CollectionOption, cli, say, say_table

HEADINGS = ("generation", "questions", "verdicts", "made", "", "decision")
POLL_SECONDS = 0.5


@cli.command(rich_help_panel=LEARNT)
@service_command
def tuning(
    client: Client,
    collection: CollectionOption = "default",
    now: Annotated[bool, typer.Option("--now", help="Learn a generation now, and wait for the decision.")] = False,
    rollback: Annotated[
        int | None, typer.Option(min=0, help="Serve this generation; 0: the encoder as it is.")
    ] = None,
    withdraw: Annotated[
        int | None, typer.Option(min=1, help="Remove the adapter of this generation for good, and learn anew.")
    ] = None,
    enabled: Annotated[
        bool | None, typer.Option("--on/--off", help="Whether the collection is tuned and a generation may serve.")
    ] = None,
    begin_with: Annotated[
        str | None,
        typer.Option(metavar="COLLECTION", help="Try what another collection learned, and wait for the decision."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Generations shown, the latest first.")] = 20,
) -> Iterator[Any]:
    """Show how verdicts tuned the question encoder of a collection, and what held-out verdicts said of it."""
    path = build_path("collections", collection, "tuning")
    change = {"enabled": enabled, "withdraw": withdraw, "serving": rollback}
    if any(value is not None for value in change.values()):
        client.send("PUT", path, json={name: value for name, value in change.items() if value is not None})
    if now or begin_with is not None:
        params = {} if begin_with is None else {"begin_with": begin_with}
        _wait(client, client.send("POST", build_path("collections", collection, "tune"), params=params))
    standing = client.send("GET", path, params={"limit": limit})
    yield standing
    say(_format_standing(standing))
    if standing["generations"]:
        rows = (_cells(made, standing["serving"]) for made in standing["generations"])
        say_table([HEADINGS, *rows], ">>><<<")


def _wait(client: Client, accepted: dict[str, Any]) -> None:
    """Wait until the job has ended.

    Raises:
        ClientError: it failed or was cancelled.
    """
    path, params = build_path("jobs", accepted["job_id"]), {"collection": accepted["collection"]}
    while (job := client.send("GET", path, params=params))["status"] in {"queued", "running"}:
        time.sleep(POLL_SECONDS)
    if job["status"] != "succeeded":
        raise ClientError(f"The job {job['status']}: {job['error']}")


def _format_standing(standing: dict[str, Any]) -> str:
    serving = standing["serving"]
    line = f"{standing['collection']}: " + (
        f"generation {serving} serves" if serving else "the encoder as it is serves"
    )
    line += f"; judged questions: {standing['judged_questions']}"
    if not standing["tunable"]:
        return f"{line}; this encoder cannot be tuned"
    if not standing["enabled"]:
        return f"{line}; tuning is off"
    return f"{line}; next attempt at {standing['due_at']}"


def _cells(generation: dict[str, Any], serving: int) -> tuple[str, ...]:
    withdrawn = "withdrawn" if generation["withdrawn_at"] else ""
    state = "serves" if generation["number"] == serving else withdrawn
    if generation["borrowed"]:
        state = f"{state} (from {generation['lender'] or 'another collection'})".lstrip()
    counts = (str(generation[name]) for name in ("number", "question_count", "verdict_count"))
    return (*counts, generation["created_at"][:19].replace("T", " "), state, generation["reason"])
