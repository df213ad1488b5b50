"""Commands about facts: what sources state, what judges say of it, and what is believed."""

import uuid
from typing import Annotated, Any

import typer

from engram.cli.command_groups import fact_group
from engram.cli.http_client import ClientError
from engram.cli.terminal import (
    CollectionOption,
    JsonOption,
    JudgeOption,
    UrlOption,
    judge_of,
    open_client,
    say,
    say_json,
)

GraphOption = Annotated[str | None, typer.Option(help="A graph of facts of its own; by default the collection's.")]
KeyOption = Annotated[str | None, typer.Option(help="Idempotency-Key; by default a new one.")]


@fact_group.command("search")
def search_facts(
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
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
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
    with open_client(url) as client:
        body = {name: value for name, value in options.items() if value is not None}
        result = client.send("POST", "/facts/search", json=body)
    if as_json:
        say_json(result)
    elif not result["facts"]:
        say(f"{collection}: no such facts")
    else:
        for fact in result["facts"]:
            say(_line(fact))
        for number, source in enumerate(result["citations"], start=1):
            say(f"[{number}] {source['source'] or source['passage_id']}: {source['text']}")


@fact_group.command("add")
def add_fact(
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
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have a source state a fact; what several sources state is believed the more."""
    statement: dict[str, str | None] = {"subject": subject, "predicate": predicate, "object": object_, "kind": kind}
    statement |= {"valid_from": since, "valid_to": until, "sentence": sentence}
    body = {
        "collection": collection,
        "source": source,
        "graph": graph,
        "facts": [{name: value for name, value in statement.items() if value is not None}],
    }
    _send_statement("/facts", body, key, url, as_json=as_json)


@fact_group.command("revise")
def revise_fact(
    action: Annotated[str, typer.Argument(help="confirm, contradict, supersede, close; or words.")],
    fact_id: Annotated[int | None, typer.Argument(metavar="FACT", help="The fact; none with words.")] = None,
    judge: JudgeOption = None,
    by: Annotated[int | None, typer.Option(help="supersede: the fact that comes after.")] = None,
    until: Annotated[str | None, typer.Option(help="First day on which it no longer holds.")] = None,
    reason: Annotated[str | None, typer.Option(help="Why.")] = None,
    graph: GraphOption = None,
    key: KeyOption = None,
    collection: CollectionOption = "default",
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge a fact; or say in words what is so, for which the service needs an LLM."""
    body: dict[str, Any] = {"collection": collection, "judge": judge_of(judge), "graph": graph}
    if fact_id is None:
        body["instruction"] = action
    else:
        options = {"action": action, "fact_id": fact_id, "by": by, "until": until, "reason": reason}
        body["revisions"] = [{name: value for name, value in options.items() if value is not None}]
    _send_statement("/facts/revise", body, key or uuid.uuid4().hex, url, as_json=as_json)


@fact_group.command("show")
def show_fact(
    fact_id: Annotated[int, typer.Argument(metavar="FACT")],
    collection: CollectionOption = "default",
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a fact: who says it, and everything that moved what is believed of it."""
    with open_client(url) as client:
        detail = client.send("GET", f"/facts/{fact_id}", params={"collection": collection})
    if as_json:
        say_json(detail)
        return
    say(_line(detail))
    for cause in detail["history"]:
        effect = "speaks for it" if cause["supports"] else "speaks against it"
        other_fact = "" if cause["of_fact"] == fact_id else f", said of fact {cause['of_fact']}"
        event = "" if cause["event_id"] is None else f", event {cause['event_id']}"
        if cause["kind"] == "change":
            effect = f"says so no more{other_fact}"
            say(f"  passage {cause['passage_id']} {effect}: belief {cause['belief']:.2f}{event}")
            continue
        who = cause["by"] or f"passage {cause['passage_id']}"
        say(f"  {cause['kind']} by {who} {effect}: belief {cause['belief']:.2f}{other_fact}{event}")


@fact_group.command("predicate")
def set_predicate(
    name: Annotated[str | None, typer.Argument(help="Without one all are counted and shown.")] = None,
    one: Annotated[bool | None, typer.Option("--one/--several", help="Objects at a time.")] = None,
    graph: GraphOption = None,
    collection: CollectionOption = "default",
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say how many objects a subject has at a time; or learn it for all predicates from counts."""
    if one is not None and name is None:
        raise ClientError("Say of which predicate.")
    body: dict[str, Any] = {"collection": collection, "graph": graph}
    with open_client(url) as client:
        if name is None:
            document = client.send("POST", "/predicates/count", json=body)
        else:
            document = client.send("PUT", "/predicates", json=body | {"predicate": name, "functional": one})
    if as_json:
        say_json(document)
        return
    for shown in document["predicates"] if name is None else [document]:
        declared = " (as declared)" if shown["declared"] is not None else ""
        how = "one at a time" if shown["functional"] else "several"
        say(f"{shown['predicate']}: {how}{declared}; {shown['single']} of {shown['subjects']} subjects have one")


def _send_statement(path: str, body: dict[str, Any], key: str | None, url: str | None, *, as_json: bool) -> None:
    headers = {} if key is None else {"idempotency-key": key}
    sent = {name: value for name, value in body.items() if value is not None}
    with open_client(url) as client:
        done = client.send("POST", path, json=sent, headers=headers)
    if as_json:
        say_json(done)
        return
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
