"""Commands about passage keys that evolve: take in what verdicts validated, look at it, go back."""

from typing import Annotated, Any

import typer

from engram.cli.command_groups import passage_key_group
from engram.cli.http_client import build_path
from engram.cli.terminal import (
    CollectionOption,
    JsonOption,
    UrlOption,
    open_client,
    say,
    say_json,
    say_table,
)

HEADINGS = ("generation", "parent", "reason", "verdicts", "passages", "made", "")


@passage_key_group.command("evolve")
def evolve(collection: CollectionOption = "default", url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Let the passage keys of a collection take in now what verdicts validated."""
    with open_client(url) as client:
        done = client.send("POST", build_path("collections", collection, "evolve"))
    if as_json:
        say_json(done)
    elif done["generation"] is None:
        say(f"{collection}: nothing waits that moves a key; {_format_generation(done['serving'])}")
    else:
        generation = done["generation"]
        say(
            f"{collection}: generation {generation['number']} serves; verdicts taken in: {generation['events']}, "
            f"keys composed: {generation['passages']}"
        )


@passage_key_group.command("status")
def key_status(
    collection: CollectionOption = "default",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Generations shown, the latest first.")] = 20,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where the passage keys of a collection stand, and its evolutions."""
    with open_client(url) as client:
        standing = client.send("GET", build_path("collections", collection, "keys"))
        page = client.send("GET", build_path("collections", collection, "generations"), params={"limit": limit})
    if as_json:
        say_json({"keys": standing, "generations": page})
        return
    say(_format_standing(standing))
    if page["generations"]:
        rows = (_cells(made, standing["generation"]) for made in page["generations"])
        say_table([HEADINGS, *rows], "<<<<<<<")


@passage_key_group.command("rollback")
def rollback(
    generation: Annotated[int, typer.Argument(min=0, help="The generation to serve; 0: base keys.")],
    collection: CollectionOption = "default",
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Serve the passage keys of another generation, earlier or later."""
    with open_client(url) as client:
        path = build_path("collections", collection, "rollback")
        standing = client.send("POST", path, json={"generation": generation})
    if as_json:
        say_json(standing)
    else:
        say(_format_standing(standing))


@passage_key_group.command("show")
def show_key(
    passage: Annotated[str, typer.Argument(help="Your id of the passage.")],
    collection: CollectionOption = "default",
    limit: Annotated[int, typer.Option(min=1, max=100, help="Units shown, best first.")] = 20,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a passage's key learned, and the questions behind it."""
    with open_client(url) as client:
        document = client.send(
            "GET", build_path("passages", passage, "key"), params={"collection": collection, "limit": limit}
        )
    if as_json:
        say_json(document)
        return
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
    state = "serves" if generation["number"] == serving else "counts" if generation["active"] else "rolled back"
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
