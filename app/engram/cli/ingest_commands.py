"""Commands that bring passages in: sent under a key, so that what is sent again counts once, and then followed."""

import io
import shlex
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from engram.cli.http_client import AwayError, Client, Patience, build_path, open_corpus
from engram.cli.query_commands import INTERRUPT_EXIT_CODE, follow_job, progress_bar
from engram.cli.terminal import (
    STOCK,
    CollectionOption,
    EncoderOption,
    JsonOption,
    UrlOption,
    cli,
    complain,
    open_client,
    say,
    say_json,
)
from engram.core.text.words import count_noun


@cli.command(rich_help_panel=STOCK)
def ingest(
    files: Annotated[list[Path], typer.Argument(help="JSONL, plain or .gz; the BEIR layout is understood.")],
    collection: CollectionOption = "default",
    encoder: EncoderOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ingest passages from files and wait until they are searchable.

    Where the service goes away meanwhile, it is waited for; what had arrived is not sent twice.
    """
    jobs = []
    with open_client(url) as client:
        for path in files:
            with open_corpus(path) as stream:
                jobs.append(ingest_stream(client, stream, path.name, collection, quiet=as_json, encoder=encoder))
    if as_json:
        say_json({"jobs": jobs})
    if not all(map(is_complete, jobs)):
        raise typer.Exit(1)


def ingest_stream(
    client: Client,
    stream: io.BufferedIOBase,
    label: str,
    collection: str,
    *,
    quiet: bool,
    encoder: str | None = None,
    documents: Sequence[str] = (),
) -> dict[str, Any]:
    """Send passages, follow their job, and return it at its end.

    Args:
        encoder: of a new collection; None for the service's default.
        documents: of the lines, in order, by which rejected ones are named.
    """
    with progress_bar() as progress:
        task = progress.add_task(f"{label}: sending", total=None)
        accepted = _send_stream(client, stream, collection, label, encoder)
        complain(f"{label}: job {accepted['job_id']}; engram job list -c {collection} shows it")
        job = follow_job(client, accepted, progress, task, label)
    if not quiet:
        counts = ", ".join(f"{job[name]} {name}" for name in ("created", "updated", "unchanged", "rejected"))
        say(f"{label}: {counts}")
    for kind, warning in ((job["result"] or {}).get("warnings") or {}).items():
        complain(f"{label}: {kind}: {count_noun(warning['count'], 'sentence')}. {warning['detail']}")
    for error in job["errors"]:
        place = documents[error["line"] - 1] if documents else f"line {error['line']}"
        complain(f"{label}: {place}: {error['reason']}")
    if job["errors"] and job["rejected"] == job["received"]:
        complain(f"{label}: no line of it is a passage. `engram import` reads documents.")
    if job["next_errors_after"] is not None:
        complain(f"{label}: more of them: GET {accepted['status_url']}&errors_after={job['next_errors_after']}")
    if job["status"] != "succeeded":
        complain(f"{label}: {job['error'] or job['status']}")
    return job


def list_rejected_lines(client: Client, collection: str, job: Mapping[str, Any]) -> list[int]:
    """Numbers of all lines that a job rejected; it came with the first of them."""
    lines = [error["line"] for error in job["errors"]]
    path, page = build_path("jobs", job["job_id"]), job
    while (after := page["next_errors_after"]) is not None:
        page = client.send(
            "GET", path, params={"collection": collection, "errors_after": after, "errors_limit": 1_000}
        )
        lines += [error["line"] for error in page["errors"]]
    return lines


def _send_stream(
    client: Client, stream: io.BufferedIOBase, collection: str, label: str, encoder: str | None
) -> dict[str, Any]:
    """The job that takes what was sent, again from the start where the service went away in between.

    Raises:
        ClientError: it was never there, stays away, or refuses.
        typer.Exit: Ctrl-C.
    """
    key = str(uuid.uuid4())
    patience = Patience()
    begun = False

    def note_sent(_count: int) -> None:
        nonlocal begun
        begun = True

    while True:
        try:
            return client.ingest(stream, collection, note_sent, key=key, encoder=encoder)
        except KeyboardInterrupt:
            complain(
                f"{label}: stopped while sending. What did not arrive whole is not ingested; "
                f"`engram job list -c {shlex.quote(collection)}` shows whether it did."
            )
            raise typer.Exit(INTERRUPT_EXIT_CODE) from None
        except AwayError as error:
            if not begun or not patience.has_time():
                raise
            complain(f"{label}: {error.detail} Sending it again ...")
            patience.wait()
            stream.seek(0)


def is_complete(job: dict[str, Any]) -> bool:
    return bool(job["status"] == "succeeded" and job["rejected"] == 0)
