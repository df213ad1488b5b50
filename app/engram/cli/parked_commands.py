"""Commands about verdicts that could not be applied: see them, and have them tried again."""

from typing import Annotated, Any

import typer

from engram.cli.command_groups import parked_group
from engram.cli.http_client import Client, ClientError
from engram.cli.query_commands import say_statuses, send_one_by_one
from engram.cli.terminal import CollectionOption, JsonOption, UrlOption, open_client, say, say_json


@parked_group.command("list")
def list_parked(
    collection: CollectionOption = "default",
    after: Annotated[int, typer.Option(min=0, help="Only those after this id.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Verdicts shown.")] = 100,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """List verdicts that could not be applied, with what they failed with."""
    where = {"collection": collection, "status": "parked", "after": after, "limit": limit}
    with open_client(url) as client:
        page = client.send("GET", "/feedback", params=where)
    if as_json:
        say_json(page)
        return
    for event in page["feedback"]:
        say(f"feedback {event['feedback_id']} of {event['judge']}, {event['received_at']}: {_line(event['error'])}")
    if page["next_after"] is not None:
        say(f"more: engram parked list -c {collection} --after {page['next_after']}")


@parked_group.command("retry")
def retry(
    events: Annotated[list[int] | None, typer.Argument(metavar="ID", help="Feedback ids.")] = None,
    judge_name: Annotated[str | None, typer.Option("--judge", help="Parked verdicts of this judge.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every parked verdict of the collection.")] = False,
    collection: CollectionOption = "default",
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have parked verdicts tried again, once the cause is mended."""
    if sum((bool(events), judge_name is not None, everything)) != 1:
        raise ClientError("Say which verdicts: by their ids, or by --judge or --all.")
    with open_client(url) as client:
        done = (
            send_one_by_one(client, "POST", events, collection, "/retry")
            if events
            else _retry_many(client, judge_name, collection)
        )
    if as_json:
        say_json(done)
    elif events:
        say_statuses(done)
    else:
        say(f"{collection}: {done['retried']} retried")


def _retry_many(client: Client, judge_name: str | None, collection: str) -> dict[str, Any]:
    options = {} if judge_name is None else {"judge": judge_name}
    answer: dict[str, Any] = client.send("POST", "/feedback/retry", json=options | {"collection": collection})
    return answer


def _line(text: str | None) -> str:
    return " ".join((text or "").split())
