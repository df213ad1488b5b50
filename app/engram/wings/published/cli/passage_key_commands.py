"""Commands about passage keys that evolve: take in what verdicts validated, look at it, go back."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from engram.cli.command_groups import passage_key_group
from engram.cli.http_client import Client, build_path
from engram.cli.service_commands import service_command
from engram.cli.terminal import CollectionOption, say, say_table

HEADINGS = ("generation", "parent", "reason", "verdicts", "passages", "made", "")


@passage_key_group.command("evolve")
@service_command
def evolve(client: Client, collection: CollectionOption = "default") -> Iterator[Any]:
    """Let the passage keys of a collection take in now what verdicts validated."""
    done = client.send("POST", build_path("collections", collection, "evolve"))
    yield done
    if done["generation"] is None:
        say(f"{collection}: nothing waits that moves a key; {_format_generation(done['serving'])}")
    else:
        generation = done["generation"]
        say(
            f"{collection}: generation {generation['number']} serves; verdicts taken in: {generation['events']}, "
            f"keys composed: {generation['passages']}"
        )


@passage_key_group.command("status")
@service_command
def key_status(
    client: Client,
    collection: CollectionOption = "default",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Generations shown, the latest first.")] = 20,
) -> Iterator[Any]:
    """Show where the passage keys of a collection stand, and its evolutions."""
    standing = client.send("GET", build_path("collections", collection, "keys"))
    page = client.send("GET", build_path("collections", collection, "generations"), params={"limit": limit})
    yield {"keys": standing, "generations": page}
    say(_format_standing(standing))
    if page["generations"]:
        rows = (_cells(made, standing["generation"]) for made in page["generations"])
        say_table([HEADINGS, *rows], "<<<<<<<")


@passage_key_group.command("rollback")
@service_command
def rollback(
    client: Client,
    generation: Annotated[int, typer.Argument(min=0, help="The generation to serve; 0: base keys.")],
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Serve the passage keys of another generation, earlier or later."""
    path = build_path("collections", collection, "rollback")
    standing = client.send("POST", path, json={"generation": generation})
    yield standing
    say(_format_standing(standing))


@passage_key_group.command("show")
@service_command
def show_key(
    client: Client,
    passage: Annotated[str, typer.Argument(help="Your id of the passage.")],
    collection: CollectionOption = "default",
    limit: Annotated[int, typer.Option(min=1, max=100, help="Units shown, best first.")] = 20,
) -> Iterator[Any]:
    """Show what a passage's key learned, and the questions behind it."""
    document = client.send(
        "GET", build_path("passages", passage, "key"), params={"collection": collection, "limit": limit}
    )
    yield document
    if document["evolved"]:
        say(
            f"{passage}: evolved, as of generation {document['key_generation']}; "
            f"moved by {document['displacement']:.3f} "
            f"of at most {document['displacement_bound']:.3f} from its base key ({document['key_building']}), "
            f"cosine {document['cosine']:.3f}"
        )
    else:
        say(f"{passage}: base key ({document['key_building']})")
    for unit in document["units"]:
        _say_unit(unit)
    if document["unit_count"] > len(document["units"]):
        say(f"and {document['unit_count'] - len(document['units'])} more units")


def _say_unit(unit: dict[str, Any]) -> None:
    score = "let go" if unit["score"] is None else f"score {unit['score']:.4f}"
    say(f"[{unit['unit_id']}] {score}{', in the key' if unit['in_key'] else ''}, {unit['method']}")
    say(f"     {_line(unit['text'])}")
    if unit["terms"]:
        added = ", ".join(f"{term['term']} {term['increment']:.2f}" for term in unit["terms"])
        say(f"     adds {added}")
    for event in unit["events"]:
        by = f" by generation {event['generation']}" if event["status"] == "taken in" else ""
        say(
            f"     feedback {event['feedback_id']} ({event['judge']}): alignment gain {event['gain']:.3f} x weight "
            f"{event['weight']:.3f}, {event['status']}{by}: {_line(event['question'])}"
        )
    if unit["event_count"] > len(unit["events"]):
        say(f"     and {unit['event_count'] - len(unit['events'])} earlier verdicts")


def _format_standing(standing: dict[str, Any]) -> str:
    due = "" if standing["due"] is None else f"; an evolution is due ({standing['due']})"
    return (
        f"{standing['collection']}: {_format_generation(standing['generation'])}; "
        f"verdicts waiting: {standing['waiting']}, "
        f"in the open batch: {standing['batch_events']}; best alignment gain {standing['best_gain']:.3f}, "
        f"stale batches: {standing['stale_batches']}{due}"
    )


def _format_generation(generation: int) -> str:
    return f"generation {generation} serves" if generation else "base keys serve"


def _cells(generation: dict[str, Any], serving: int) -> tuple[str, ...]:
    state = "serves" if generation["number"] == serving else "active" if generation["active"] else "rolled back"
    numbers = (
        generation["number"],
        generation["parent"],
        generation["reason"],
        generation["events"],
        generation["passages"],
    )
    return (*map(str, numbers), generation["created_at"][:19].replace("T", " "), state)


def _line(text: str) -> str:
    return " ".join(text.split())
