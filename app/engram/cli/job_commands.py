"""Commands about jobs: what is under way in a collection, and an end to it."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from engram.cli.command_groups import job_group
from engram.cli.http_client import Client, build_path
from engram.cli.service_commands import service_command
from engram.cli.terminal import CollectionOption, complain, say, say_table

HEADINGS = ("job", "kind", "status", "done", "of", "asked for", "")


@job_group.command("list")
@service_command
def list_jobs(
    client: Client,
    collection: CollectionOption = "default",
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Jobs to list.")] = 20,
    before: Annotated[int | None, typer.Option(min=1, help="Only those before this number.")] = None,
) -> Iterator[Any]:
    """List the jobs of a collection, the latest first."""
    where = {"limit": limit, "before": before}
    page = client.send("GET", build_path("collections", collection, "jobs"), params=where)
    yield page
    if page["jobs"]:
        say_table([HEADINGS, *map(_cells, page["jobs"])], "<<<>><<")
    for job in page["jobs"]:
        if job["error"] is not None:
            complain(f"{job['job_id']}: {job['error']}")
    if page["next_before"] is not None:
        say(f"more: engram job list -c {collection} --before {page['next_before']}")


@job_group.command("cancel")
@service_command
def cancel_job(
    client: Client,
    job_id: Annotated[str, typer.Argument(metavar="ID", help="The job's id.")],
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """End a job early. What it did so far stays."""
    job = client.send("POST", build_path("jobs", job_id, "cancel"), params={"collection": collection})
    yield job
    if job["status"] == "cancelled":
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
