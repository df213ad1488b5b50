"""Commands that talk to a running service."""

import json
import shlex
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engram.cli.answer_text import explain_empty_answer, say_answer, say_changes
from engram.cli.command_groups import collection_group
from engram.cli.http_client import Client, ClientError, build_path, drop_unset
from engram.cli.metadata_filters import FilterOption, as_filter
from engram.cli.service_commands import service_command
from engram.cli.terminal import (
    ASK,
    CollectionOption,
    JsonOption,
    JudgeOption,
    UrlOption,
    cli,
    complain,
    err,
    judge_of,
    open_client,
    say,
    say_json,
)

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

INTERRUPT_EXIT_CODE = 130
"""Exit code after Ctrl-C, as shells have it."""


def progress_bar() -> "Progress":
    """Make the progress bar of a job."""
    from engram.cli import progress_bars

    return progress_bars.progress_bar(err())


def follow_job(
    client: Client, accepted: dict[str, Any], progress: "Progress", task: "TaskID", label: str
) -> dict[str, Any]:
    """Follow a job to its end with the bar of ``task``, and return it. Ctrl-C leaves the job to its worker.

    Raises:
        typer.Exit: Ctrl-C; a line says how to look at the job or cancel it.
    """
    job: dict[str, Any] = {}

    def warn_about_outage(error: ClientError) -> None:
        complain(f"{label}: {error.detail} The job goes on without; waiting ...")

    try:
        for job in client.follow(accepted["job_id"], accepted["collection"], warn_about_outage):
            done = job["received"] - job["waiting"]
            progress.update(task, description=label, total=job["received"], completed=done)
    except KeyboardInterrupt:
        where = f"-c {shlex.quote(accepted['collection'])}"
        complain(
            f"{label}: the job goes on. `engram job list {where}` shows it, "
            f"`engram job cancel {accepted['job_id']} {where}` ends it."
        )
        raise typer.Exit(INTERRUPT_EXIT_CODE) from None
    return job


def wait_for_success(client: Client, accepted: dict[str, Any], collection: str) -> dict[str, Any]:
    """Show a job's progress until it has ended, and return it.

    Raises:
        ClientError: it failed, or somebody cancelled it.
        typer.Exit: Ctrl-C.
    """
    with progress_bar() as progress:
        job = follow_job(client, accepted, progress, progress.add_task(collection, total=None), collection)
    return require_success(job)


def require_success(job: dict[str, Any]) -> dict[str, Any]:
    """The job, if it did all of it.

    Raises:
        ClientError: it failed, or somebody cancelled it.
    """
    if job["status"] != "succeeded":
        raise ClientError(f"{job['collection']}: {job['error'] or job['status']}")
    return job


def send_one_by_one(
    client: Client, method: str, events: list[int], collection: str, action: str = ""
) -> dict[str, Any]:
    """Have the service do the same with each of these verdicts; what became of them, as a page of verdicts."""
    where = {"collection": collection}
    return {"feedback": [client.send(method, f"/feedback/{event}{action}", params=where) for event in events]}


def print_statuses(page: dict[str, Any]) -> None:
    """Print one line per verdict of the page."""
    for event in page["feedback"]:
        say(f"feedback {event['feedback_id']}: {event['status']}")


@collection_group.command("rekey")
@service_command
def rekey(
    client: Client,
    key_building: Annotated[
        str, typer.Option(help="What keys are made of from now on: full, title, abstract or keywords.")
    ],
    collection: CollectionOption = "default",
    key: Annotated[str | None, typer.Option(help="Idempotency-Key; none by default.")] = None,
) -> Iterator[Any]:
    """Make the keys anew by which a collection's passages are found, and wait until the new ones serve."""
    path = build_path("collections", collection, "rekey")
    accepted = client.send("POST", path, json={"key_building": key_building}, key=key)
    job = wait_for_success(client, accepted, collection)
    yield job
    say(f"{collection}: keys are made of {key_building}, {job['updated']} updated, {job['unchanged']} unchanged")


@collection_group.command("reembed")
@service_command
def reembed(
    client: Client,
    collection: CollectionOption = "default",
    model: Annotated[
        str | None, typer.Option(help="The encoder; by default that of the service that the collection is not of.")
    ] = None,
    drop: Annotated[
        bool, typer.Option("--drop", help="Give up the vectors that do not serve: there is no going back then.")
    ] = False,
    key: Annotated[str | None, typer.Option(help="Idempotency-Key; none by default.")] = None,
) -> Iterator[Any]:
    """Give a collection the vectors of another encoder, and wait until they serve; queries go on meanwhile."""
    if drop and model is not None:
        raise ClientError("--drop and --model do not go together.")
    path = build_path("collections", collection, "reembed")
    if drop:
        accepted = client.send("DELETE", path, key=key)
    else:
        accepted = client.send("POST", path, json=drop_unset({"model": model}), key=key)
    job = wait_for_success(client, accepted, collection)
    yield job
    if drop:
        say(f"{collection}: {job['updated']} vectors that did not serve are gone")
    else:
        say(f"{collection}: {job['result']['model']} serves, {job['updated']} vectors")


@cli.command(rich_help_panel=ASK)
@service_command
def query(
    client: Client,
    text: Annotated[str, typer.Argument(help="The question.")],
    collections: Annotated[
        list[str] | None,
        typer.Option("--collection", "-c", help="The collection's name; repeatable, for one list of several."),
    ] = None,
    top_k: Annotated[int, typer.Option(min=1, max=100, help="Passages shown.")] = 5,
    memory: Annotated[str | None, typer.Option(help="off or read (the default)")] = None,
    profile: Annotated[str | None, typer.Option(help="paper or default (the default)")] = None,
    strategy: Annotated[str | None, typer.Option(help="graph (the default), dense, lexical or hybrid")] = None,
    unit: Annotated[
        str | None, typer.Option(help="Who asks: one unit stays in one arm of the collection's experiment.")
    ] = None,
    expansions: Annotated[
        Path | None, typer.Option(help="A file of expansions, as `engram expand --json` prints them.")
    ] = None,
    filters: FilterOption = None,
    collapse_duplicates: Annotated[
        bool | None,
        typer.Option(
            "--collapse-duplicates/--no-collapse-duplicates",
            help="Leave out passages with nearly the text of a better one; the service's own setting by default.",
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(help="Also show so many passages before and after each in its document, or its `section`."),
    ] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Show why each sentence was selected, and which verdicts did what.")
    ] = False,
) -> Iterator[Any]:
    """Ask a question and show the passages that answer it."""
    arm = drop_unset({"memory": memory, "profile": profile, "strategy": strategy})
    body = {
        "query": text,
        "top_k": top_k,
        "context": _read_context(context),
        "unit": unit,
        "filter": as_filter(filters),
        "collapse_duplicates": collapse_duplicates,
        "include": ["trace"] if trace else [],
        "expansions": [] if expansions is None else _expansions(expansions),
    }
    several = len(collections or ()) > 1
    body |= {"collections": collections} if several else {"collection": (collections or ["default"])[0]}
    # An arm that is said, be it empty, is the caller's own: an experiment gives none then.
    answer = client.send("POST", "/query", json=body | ({"arm": arm} if arm else {}))
    yield answer
    say_answer(answer)
    if not answer["passages"] and (reason := explain_empty_answer(client, answer, body["filter"])):
        say(reason)


def _read_context(wanted: str | None) -> dict[str, Any] | None:
    """Return how much context a query asks for: a number of passages on both sides, or ``section``."""
    if wanted is None:
        return None
    if wanted == "section":
        return {"section": True}
    if not wanted.isdecimal():
        raise ClientError(f"--context is a number of passages or section, not {wanted!r}.")
    return {"before": int(wanted), "after": int(wanted)}


def _expansions(path: Path) -> Any:
    """The expansions in a file: a list of them, or a document that has one under that name."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
        return document if isinstance(document, list) else document["expansions"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ClientError(f"{path}: not what `engram expand --json` prints") from error


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


@cli.command(rich_help_panel=ASK)
def feedback(
    query_id: Annotated[str, typer.Argument(help="The query_id of an answer.")],
    supporting: Annotated[
        list[int] | None, typer.Option("--supporting", "-s", help="Id of a sentence that helped; repeatable.")
    ] = None,
    rejected: Annotated[
        list[int] | None, typer.Option("--rejected", "-r", help="Id of a sentence that did not; repeatable.")
    ] = None,
    missed: Annotated[
        list[int] | None,
        typer.Option("--missed", "-m", help="Id of evidence that retrieval did not return; repeatable."),
    ] = None,
    passages: Annotated[
        list[str] | None,
        typer.Option(
            "--passage",
            help="Your id of a passage that helped as a whole; its sentences that are not named are left alone. "
            "Repeatable.",
        ),
    ] = None,
    expansions: Annotated[
        Path | None,
        typer.Option(
            help="A file of expansions that passage keys learn from, as `engram expand --json` prints them."
        ),
    ] = None,
    complete: Annotated[
        bool,
        typer.Option(
            "--complete",
            help="Say that all evidence is named: activated sentences that are not named count as rejected. By "
            "default they stay unknown.",
        ),
    ] = False,
    none_helped: Annotated[
        bool, typer.Option("--none-helped", help="Say that nothing helped: all that was activated is rejected.")
    ] = False,
    judge_name: JudgeOption = None,
    key: Annotated[str | None, typer.Option(help="Idempotency-Key; a new one by default.")] = None,
    collection: CollectionOption = "default",
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say which sentences helped, and show what that changed."""
    body = {
        "query_id": query_id,
        "collection": collection,
        "supporting": supporting or [],
        "rejected": rejected or [],
        "missed": missed or [],
        "supporting_passages": passages or [],
        "expansions": [] if expansions is None else _expansions(expansions),
        "complete": complete,
        "none_helped": none_helped,
        "judge": judge_of(judge_name),
        "wait": True,
    }
    with open_client(url) as client:
        _send_verdict(client, body, key, as_json=as_json)


@cli.command(rich_help_panel=ASK)
def thumb(
    query_id: Annotated[str, typer.Argument(help="The query_id of an answer.")],
    rating: Annotated[str, typer.Argument(help="up or down; none: take the rating back.")] = "up",
    cited: Annotated[
        list[str] | None, typer.Option("--cited", help="Your id of a passage that the answer used; repeatable.")
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option(help="Of a thumb down: wrong_answer, missing, irrelevant or outdated, or any text."),
    ] = None,
    judge_name: JudgeOption = None,
    key: Annotated[str | None, typer.Option(help="Idempotency-Key; a new one by default.")] = None,
    collection: CollectionOption = "default",
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rate an answer, and show what that changed. A rating replaces the judge's earlier one."""
    if rating not in {"up", "down", "none"}:
        raise ClientError(f"A rating is up, down or none, not {rating!r}.")
    body = {
        "query_id": query_id,
        "collection": collection,
        "rating": None if rating == "none" else rating,
        "judge": judge_of(judge_name),
        "wait": True,
    }
    with open_client(url) as client:
        _send_verdict(client, body | drop_unset({"cited": cited or None, "reason": reason}), key, as_json=as_json)


def _send_verdict(client: Client, body: dict[str, Any], key: str | None, *, as_json: bool) -> None:
    """Send a verdict or a rating, and print what it changed.

    Raises:
        ClientError: it cannot be applied.
    """
    receipt = client.send("POST", "/feedback", json=body, key=key or str(uuid.uuid4()))
    if as_json:
        say_json(receipt)
    else:
        say(f"feedback {receipt['feedback_id']}: {receipt['status']}")
        say_changes(client, receipt)
        _say_keys(receipt["keys"])
    if receipt["status"] == "parked":
        raise ClientError(f"feedback {receipt['feedback_id']} cannot be applied: {receipt['error']}")


def _say_keys(effect: dict[str, Any] | None) -> None:
    """Print what a verdict did to passage keys; None prints nothing."""
    if effect is None:
        return
    if effect["gate"] == "none":
        say("     keys: the expansions are not validated, and teach nothing")
        return
    say(
        f"     keys: validated by {effect['gate']}, highest alignment gain {effect['gain']:.3f}, {effect['status']}"
    )
    for credit in effect["credits"]:
        say(
            f"     {credit['passage_id']}, unit {credit['unit_id']}: "
            f"alignment gain {credit['gain']:.3f} x weight {credit['weight']:.3f}"
        )
