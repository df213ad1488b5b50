"""Commands about jobs: what is under way in a collection, and an end to it."""

from typing import Annotated, Any

import typer

from engram.cli.command_groups import job_group
from engram.cli.http_client import build_path
from engram.cli.terminal import (
    CollectionOption,
    JsonOption,
    UrlOption,
    complain,
    open_client,
    say,
    say_json,
    say_table,
)

HEADINGS = ("job", "kind", "status", "done", "of", "asked for", "")


@job_group.command("list")
def list_jobs(
    collection: CollectionOption = "default",
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Jobs to list.")] = 20,
    before: Annotated[int | None, typer.Option(min=1, help="Only those before this number.")] = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the jobs of a collection, the latest first."""
    where = {"limit": limit} | ({} if before is None else {"before": before})
    with open_client(url) as client:
        page = client.send("GET", build_path("collections", collection, "jobs"), params=where)
    if as_json:
        say_json(page)
        return
    if page["jobs"]:
        say_table([HEADINGS, *map(_cells, page["jobs"])], "<<<>><<")
    for job in page["jobs"]:
        if job["error"] is not None:
            complain(f"{job['job_id']}: {job['error']}")
    if page["next_before"] is not None:
        say(f"more: engram job list -c {collection} --before {page['next_before']}")


@job_group.command("cancel")
def cancel_job(
    job_id: Annotated[str, typer.Argument(metavar="ID", help="The job's id.")],
    collection: CollectionOption = "default",
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """End a job early. What it did so far stays."""
    with open_client(url) as client:
        job = client.send("DELETE", build_path("jobs", job_id), params={"collection": collection})
    if as_json:
        say_json(job)
    elif job["status"] == "cancelled":
        say(f"job {job_id}: cancelled, {_progress(job)}")
    else:
        say(f"job {job_id}: ends as soon as what is in hand is whole, {_progress(job)} so far")


def _cells(job: dict[str, Any]) -> tuple[str, ...]:
    where = f"{job['ahead']} ahead" if job["ahead"] else job["stage"] if job["status"] == "running" else None
    ending = "to be cancelled" if job["cancel_requested_at"] and job["status"] == "running" else None
    done = job["received"] - job["waiting"]
    created = job["created_at"][:19].replace("T", " ")
    remark = ", ".join(part for part in (where, ending) if part)
    return (job["job_id"], job["kind"], job["status"], str(done), str(job["received"]), created, remark)


def _progress(job: dict[str, Any]) -> str:
    return f"{job['received'] - job['waiting']} of {job['received']} done"
