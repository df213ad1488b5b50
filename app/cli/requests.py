"""Commands that talk to a running service."""

import io
import uuid
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from app.cli.console import CollectionOption, JsonOption, UrlOption, cli, complain, err, say, say_json, settings
from app.client import Client, ClientError, open_corpus


@cli.command()
def ingest(
    files: Annotated[list[Path], typer.Argument(help="JSONL, plain or .gz; the BEIR layout is understood.")],
    collection: CollectionOption = "default",
    url: UrlOption = None,
) -> None:
    """Ingest passages from files and wait until they are searchable."""
    failed = False
    with Client(_base_url(url)) as client:
        for path in files:
            with open_corpus(path) as stream:
                failed |= not _ingest(client, stream, path.name, collection)
    if failed:
        raise typer.Exit(1)


def _ingest(client: Client, stream: io.BufferedIOBase, label: str, collection: str) -> bool:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err) as progress:
        task = progress.add_task(f"{label}: sending", total=None)
        accepted = client.ingest(stream, collection)
        job: dict[str, Any] = {}
        for job in client.follow(accepted["job_id"], collection):
            done = job["received"] - job["waiting"]
            progress.update(task, description=label, total=job["received"], completed=done)
    counts = ", ".join(f"{job[name]} {name}" for name in ("created", "updated", "unchanged", "rejected"))
    say(f"{label}: {counts}")
    for error in job["errors"]:
        complain(f"{label}: line {error['line']}: {error['reason']}")
    if job["next_errors_after"] is not None:
        complain(f"{label}: more of them: GET {accepted['status_url']}&errors_after={job['next_errors_after']}")
    if job["status"] == "failed":
        complain(f"{label}: {job['error']}")
    return bool(job["status"] == "succeeded" and job["rejected"] == 0)


@cli.command()
def query(
    text: Annotated[str, typer.Argument(help="The question.")],
    collection: CollectionOption = "default",
    top_k: Annotated[int, typer.Option(min=1, max=100)] = 5,
    memory: Annotated[str, typer.Option(help="off or read")] = "read",
    profile: Annotated[str, typer.Option(help="paper or default")] = "default",
    trace: Annotated[bool, typer.Option("--trace", help="Show why each sentence was selected.")] = False,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a question and show the passages that answer it."""
    body = {
        "query": text,
        "collection": collection,
        "top_k": top_k,
        "arm": {"memory": memory, "profile": profile},
        "include": ["trace"] if trace else [],
    }
    with Client(_base_url(url)) as client:
        answer = client.send("POST", "/query", json=body)
    if as_json:
        say_json(answer)
        return
    say(f"query {answer['query_id']}: {answer['hops']} hops, {answer['stop_reason']}")
    for rank, passage in enumerate(answer["passages"], start=1):
        say(f"{rank}. {passage['passage_id']}  {passage['score']:.3f}")
        for sentence in passage["sentences"]:
            say(f"     [{sentence['sentence_id']}] {sentence['text']}")
    for hop in (answer["trace"] or {}).get("hops", []):
        say(f"hop {hop['hop']}: {hop['candidates']} candidates from {list(hop['entities'])}")
        for row in hop["sentences"]:
            say(
                f"     [{row['sentence_id']}] {row['score']:.3f} = activation {row['activation']:.3f} x "
                f"semantic {row['semantic']:.3f} x task {row['task_factor']:.3f} x time "
                f"{row['time_factor']:.3f} (normalised), recall {row['recall_prior']:.3f}, by {row['activated_by']}"
            )


@cli.command()
def feedback(
    query_id: Annotated[str, typer.Argument(help="The query_id of an answer.")],
    supporting: Annotated[list[int] | None, typer.Option("--supporting", "-s", help="A sentence id.")] = None,
    rejected: Annotated[list[int] | None, typer.Option("--rejected", "-r", help="A sentence id.")] = None,
    missed: Annotated[list[int] | None, typer.Option("--missed", "-m", help="A sentence id.")] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Judge only what is named.")] = False,
    judge_name: Annotated[str, typer.Option("--judge", help="Who judges.")] = "cli",
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
        "partial": partial,
        "judge": judge_name,
        "wait": True,
    }
    with Client(_base_url(url)) as client:
        receipt = client.send("POST", "/feedback", json=body, headers={"idempotency-key": key or str(uuid.uuid4())})
    if as_json:
        say_json(receipt)
    else:
        say(f"feedback {receipt['feedback_id']}: {receipt['status']}")
        for change in receipt["changes"]:
            say(
                f"     [{change['sentence_id']}] {change['channel']}: gain {change['gain']:.3f}, perplexity "
                f"{change['perplexity_before']:.3f} -> {change['perplexity_after']:.3f}"
            )
    if receipt["status"] == "parked":
        raise ClientError(f"feedback {receipt['feedback_id']} cannot be applied: {receipt['error']}")


@cli.command()
def sample(url: UrlOption = None) -> None:
    """Ingest the sample corpus into a running service and print a tour of it."""
    from app.sample import COLLECTION, corpus
    from app.sample.tour import tour

    base_url = _base_url(url)
    with Client(base_url) as client:
        ok = _ingest(client, io.BytesIO(corpus()), "sample corpus", COLLECTION)
    say(tour(base_url))
    if not ok:
        raise typer.Exit(1)


def _base_url(url: str | None) -> str:
    return (url or settings().base_url).rstrip("/")
