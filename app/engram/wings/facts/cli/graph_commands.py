"""Commands about graphs of facts as a whole: merged, aligned, and what judges said of them taken back."""

import uuid
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from engram.cli.command_groups import fact_group
from engram.cli.http_client import Client, ClientError, drop_unset
from engram.cli.service_commands import service_command
from engram.cli.terminal import CollectionOption, JudgeOption, judge_of, say
from engram.core.text.words import count_noun
from engram.wings.facts.cli.fact_commands import GraphOption, KeyOption


@fact_group.command("merge")
@service_command
def merge_graphs(
    client: Client,
    graph: Annotated[str, typer.Argument(help="A graph of facts of its own.")],
    into: Annotated[str | None, typer.Option(help="The graph it comes to; by default the collection's.")] = None,
    judge: JudgeOption = None,
    key: KeyOption = None,
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Merge a graph of facts into another: all that was said in it, each once; `retract` takes it back."""
    options = {"collection": collection, "graph": graph, "into": into, "judge": judge_of(judge)}
    done = client.send("POST", "/facts/merge", json=drop_unset(options), key=key or uuid.uuid4().hex)
    yield done
    counts = (count_noun(done[f"{noun}s"], noun) for noun in ("fact", "sentence", "verdict", "join"))
    say(f"event {done['event']['event_id']}: merged {graph}: {', '.join(counts)}")


@fact_group.command("align")
@service_command
def align_names(
    client: Client,
    preview: Annotated[bool, typer.Option("--preview", help="Only show which.")] = False,
    graph: GraphOption = None,
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Join names of facts that mean the same, as is done with every new one."""
    options = {"collection": collection, "graph": graph, "preview": preview}
    result = client.send("POST", "/entities/align", json=drop_unset(options))
    yield result
    for one in result["joins"]:
        how = one["way"] if one["way"] == "alias" else f"{one['way']} {one['similarity']:.2f}"
        say(f"entity {one['entity_id']}: {one['name']} is {one['means']}, entity {one['means_id']} ({how})")
    say(f"{collection}: {result['joined']} names {'would join' if preview else 'joined'}")


@fact_group.command("retract")
@service_command
def retract(
    client: Client,
    event_id: Annotated[
        int | None,
        typer.Argument(metavar="EVENT", help="Its id, as `add`, `revise`, `merge` and `show` print it."),
    ] = None,
    judge_name: Annotated[str | None, typer.Option("--judge", help="All verdicts on facts of this judge.")] = None,
    since: Annotated[str | None, typer.Option("--from", help="Received since, as 2026-05-01T00:00:00Z.")] = None,
    before: Annotated[str | None, typer.Option("--to", help="Received before that.")] = None,
    kind: Annotated[
        list[str] | None, typer.Option(help="confirm, contradict, supersede, close, merge; repeatable.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every verdict on facts of the collection.")] = False,
    preview: Annotated[bool, typer.Option("--preview", help="Only show what it would change.")] = False,
    graph: GraphOption = None,
    key: KeyOption = None,
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Revoke what was said of facts, as if it had never come; of a revocation, have what it revoked count again."""
    conditions: dict[str, Any] = {"judge": judge_name, "from": since, "to": before, "all": everything or None}
    conditions |= {"graph": graph, "kinds": kind}
    criteria = drop_unset(conditions)
    if (event_id is None) == (not criteria):
        raise ClientError("Say which: an event, or --judge, --from, --to, --graph or --all.")
    if event_id is not None:
        done = client.send("DELETE", f"/facts/events/{event_id}", params={"collection": collection})
    else:
        body = criteria | {"collection": collection, "preview": preview}
        done = client.send("POST", "/facts/revoke", json=body, key=key or uuid.uuid4().hex)
    yield done
    if event_id is not None:
        say(f"event {done['event_id']}: {done['status']}")
    else:
        _say_revoked(done, preview=preview)


def _say_revoked(done: dict[str, Any], *, preview: bool) -> None:
    kinds = ", ".join(f"{count} {kind}" for kind, count in done["kinds"].items()) or "nothing"
    event = "" if done["event"] is None else f"event {done['event']['event_id']}: "
    say(f"{event}{kinds} {'would be revoked' if preview else 'revoked'}")
    say(f"{done['facts']} facts change, {done['doubted']} become doubted, {done['believed']} are doubted no more")
    for one in done["changed"]:
        say(f"  fact {one['fact_id']}: belief {one['before']:.2f} -> {one['after']:.2f}")
