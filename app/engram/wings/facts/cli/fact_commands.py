"""Commands about facts: what sources state, what judges say of it, and what is believed."""

import uuid
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from engram.cli.command_groups import fact_group
from engram.cli.http_client import Client, ClientError, drop_unset
from engram.cli.service_commands import service_command
from engram.cli.terminal import CollectionOption, JudgeOption, judge_of, say

GraphOption = Annotated[str | None, typer.Option(help="A graph of facts of its own; by default the collection's.")]
KeyOption = Annotated[str | None, typer.Option(help="Idempotency-Key; by default a new one.")]


@fact_group.command("search")
@service_command
def search_facts(
    client: Client,
    question: Annotated[str | None, typer.Argument(help="What is asked.")] = None,
    entity: Annotated[list[str] | None, typer.Option(help="An entity to begin at; repeatable.")] = None,
    subject: Annotated[str | None, typer.Option(help="Facts of this subject.")] = None,
    predicate: Annotated[str | None, typer.Option(help="Facts with this predicate.")] = None,
    object_: Annotated[str | None, typer.Option("--object", help="Facts with this object.")] = None,
    max_edges: Annotated[int, typer.Option(min=1, max=4, help="Edges of a path, at most.")] = 2,
    as_of: Annotated[str | None, typer.Option(help="As it was known then, as 2026-05-01T00:00:00Z.")] = None,
    valid_on: Annotated[str | None, typer.Option(help="What held on that day, as 2026-05-01.")] = None,
    include_closed: Annotated[bool, typer.Option("--include-closed", help="Also what is over.")] = False,
    graph: GraphOption = None,
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Search facts: lines of what is believed, with who says so."""
    options = {
        "query": question,
        "entities": entity,
        "subject": subject,
        "predicate": predicate,
        "object": object_,
        "max_edges": max_edges,
        "as_of": as_of,
        "valid_on": valid_on,
        "include_closed": include_closed,
        "graph": graph,
        "collection": collection,
    }
    result = client.send("POST", "/facts/search", json=drop_unset(options))
    yield result
    if not result["facts"]:
        say(f"{collection}: no such facts")
    else:
        for fact in result["facts"]:
            say(_line(fact))
        for number, source in enumerate(result["citations"], start=1):
            say(f"[{number}] {source['stated_by']}: {source['text']}")


@fact_group.command("add")
@service_command
def add_fact(
    client: Client,
    source: Annotated[str, typer.Argument(help="Who says so.")],
    subject: Annotated[str, typer.Argument()],
    predicate: Annotated[str, typer.Argument()],
    object_: Annotated[str, typer.Argument(metavar="OBJECT")],
    kind: Annotated[str, typer.Option(help="What the object is: entity, date, number or text.")] = "entity",
    since: Annotated[str | None, typer.Option(help="First day on which it holds, as 2026-05-01.")] = None,
    until: Annotated[str | None, typer.Option(help="First day on which it no longer holds.")] = None,
    sentence: Annotated[str | None, typer.Option(help="How the source says it.")] = None,
    graph: GraphOption = None,
    key: KeyOption = None,
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Have a source state a fact; what several sources state is believed the more."""
    statement: dict[str, str | None] = {"subject": subject, "predicate": predicate, "object": object_, "kind": kind}
    statement |= {"valid_from": since, "valid_to": until, "sentence": sentence}
    body = {
        "collection": collection,
        "source": source,
        "graph": graph,
        "facts": [drop_unset(statement)],
    }
    yield from _send_statement(client, "/facts", body, key)


@fact_group.command("revise")
@service_command
def revise_fact(
    client: Client,
    action: Annotated[str, typer.Argument(help="confirm, contradict, supersede, close; or words.")],
    fact_id: Annotated[int | None, typer.Argument(metavar="FACT", help="The fact; none with words.")] = None,
    judge: JudgeOption = None,
    by: Annotated[int | None, typer.Option(help="supersede: the fact that comes after.")] = None,
    until: Annotated[str | None, typer.Option(help="First day on which it no longer holds.")] = None,
    reason: Annotated[str | None, typer.Option(help="Why.")] = None,
    graph: GraphOption = None,
    key: KeyOption = None,
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Judge a fact; or say in words what is so, for which the service needs an LLM."""
    body: dict[str, Any] = {"collection": collection, "judge": judge_of(judge), "graph": graph}
    if fact_id is None:
        body["instruction"] = action
    else:
        options = {"action": action, "fact_id": fact_id, "by": by, "until": until, "reason": reason}
        body["revisions"] = [drop_unset(options)]
    yield from _send_statement(client, "/facts/revise", body, key or uuid.uuid4().hex)


@fact_group.command("show")
@service_command
def show_fact(
    client: Client,
    fact_id: Annotated[int, typer.Argument(metavar="FACT")],
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Show a fact: who says it, and everything that moved what is believed of it."""
    detail = client.send("GET", f"/facts/{fact_id}", params={"collection": collection})
    yield detail
    say(_line(detail))
    for cause in detail["history"]:
        effect = "speaks for it" if cause["supports"] else "speaks against it"
        other_fact = "" if cause["of_fact"] == fact_id else f", said of fact {cause['of_fact']}"
        event = "" if cause["event_id"] is None else f", event {cause['event_id']}"
        if cause["kind"] == "change":
            effect = f"says so no more{other_fact}"
            say(f"  passage {cause['passage_id']} {effect}: belief {cause['belief']:.2f}{event}")
            continue
        who = cause["by"]
        say(f"  {cause['kind']} by {who} {effect}: belief {cause['belief']:.2f}{other_fact}{event}")


@fact_group.command("predicate")
@service_command
def set_predicate(
    client: Client,
    name: Annotated[str | None, typer.Argument(help="Without one all are counted and shown.")] = None,
    one: Annotated[bool | None, typer.Option("--one/--several", help="Objects at a time.")] = None,
    graph: GraphOption = None,
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Say how many objects a subject has at a time; or learn it for all predicates from counts."""
    if one is not None and name is None:
        raise ClientError("Say of which predicate.")
    body: dict[str, Any] = {"collection": collection, "graph": graph}
    if name is None:
        document = client.send("POST", "/predicates/count", json=body)
    else:
        document = client.send("PUT", "/predicates", json=body | {"predicate": name, "functional": one})
    yield document
    for shown in document["predicates"] if name is None else [document]:
        declared = " (as declared)" if shown["declared"] is not None else ""
        how = "one at a time" if shown["functional"] else "several"
        say(f"{shown['predicate']}: {how}{declared}; {shown['single']} of {shown['subjects']} subjects have one")


def _send_statement(client: Client, path: str, body: dict[str, Any], key: str | None) -> Iterator[Any]:
    done = client.send("POST", path, json=drop_unset(body), key=key)
    yield done
    for event in done["events"]:
        say(f"event {event['event_id']}: {event['kind']}, {event['status']}")
    for fact in done["facts"]:
        say(_line(fact))


def _line(fact_out: dict[str, Any]) -> str:
    """A fact in one line."""
    notes = [f"belief {fact_out['belief']:.2f}"]
    notes += ["doubted"] if fact_out["doubted"] else []
    notes += [f"since {fact_out['valid_from']}"] if fact_out["valid_from"] else []
    notes += [f"until {fact_out['held_until']}"] if fact_out["held_until"] else []
    notes += [fact_out["closed_reason"]] if fact_out["closed_reason"] else []
    statement = f"{fact_out['subject']['name']} -[{fact_out['predicate']}]-> {fact_out['object']}"
    return f"fact {fact_out['fact_id']}: {statement} ({', '.join(notes)})"
