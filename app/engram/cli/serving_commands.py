"""Commands about how a collection serves."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from engram.cli.command_groups import collection_group
from engram.cli.http_client import Client, ClientError, build_path, drop_unset
from engram.cli.service_commands import service_command
from engram.cli.terminal import CollectionOption, say

PLURALS = {"passage": "passages", "sentence": "sentences", "entity": "entities"}


@collection_group.command("show")
@service_command
def show_collection(client: Client, collection: CollectionOption = "default") -> Iterator[Any]:
    """Show what a collection holds and how it serves."""
    document = client.send("GET", build_path("collections", collection))
    yield document
    _say_collection(document)


@collection_group.command("set")
@service_command
def set_collection(
    client: Client,
    collection: CollectionOption = "default",
    shadow: Annotated[
        bool | None, typer.Option("--shadow/--live", help="Serve without memory while it learns, or with it.")
    ] = None,
    experiment: Annotated[
        Path | None,
        typer.Option(help='A JSON file: {"arms": [{"name": ..., "percent": ..., "memory": "off"}, ...]}.'),
    ] = None,
    no_experiment: Annotated[bool, typer.Option("--no-experiment", help="End the experiment.")] = False,
    explore: Annotated[
        float | None, typer.Option(help="Share of the queries, 0 to 1, that make room for what is untried.")
    ] = None,
    slots: Annotated[int | None, typer.Option(help="Last positions of an answer that it may take.")] = None,
    seed: Annotated[int | None, typer.Option(help="Make its draws repeatable.")] = None,
    learn_published: Annotated[
        bool | None,
        typer.Option(
            "--learn-published/--no-learn-published",
            help="Have verdicts teach sentence memories and passage keys, or leave them alone.",
        ),
    ] = None,
    no_exploration: Annotated[bool, typer.Option("--no-exploration", help="End the exploration.")] = False,
    corpus_kind: Annotated[
        str | None,
        typer.Option(
            help="Which ranking weights it has: encyclopedic, general, or auto (by titles and questions)."
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(help="Language of passages that come without one, such as de; auto: theirs is recognised."),
    ] = None,
    link_template: Annotated[
        str | None,
        typer.Option(help="Links to passages, such as 'https://wiki/{source}#{heading}'; none: no links."),
    ] = None,
    newer_half_life: Annotated[
        float | None,
        typer.Option(
            help="Days after which half of its texts hold no more: prefers newer ones. 0: age does not count."
        ),
    ] = None,
) -> Iterator[Any]:
    """Change how a collection serves. A setting that no option names stays as it is."""
    exploring = drop_unset({"share": explore, "slots": slots, "seed": seed})
    if experiment is not None and no_experiment:
        raise ClientError("--experiment and --no-experiment contradict each other.")
    if exploring and no_exploration:
        raise ClientError("--explore, --slots and --seed contradict --no-exploration.")
    patch: dict[str, Any] = {}
    if shadow is not None:
        patch["serving"] = "shadow" if shadow else "live"
    if experiment is not None or no_experiment:
        patch["experiment"] = None if experiment is None else _document(experiment)
    if exploring or no_exploration:
        patch["exploration"] = exploring or None
    if learn_published is not None:
        patch["published"] = None if learn_published else {"learn": False}
    if corpus_kind is not None:
        patch["corpus_kind"] = None if corpus_kind == "auto" else corpus_kind
    if language is not None:
        patch["language"] = None if language == "auto" else language
    if link_template is not None:
        patch["link_template"] = None if link_template == "none" else link_template
    if newer_half_life is not None:
        patch["newer_half_life_days"] = newer_half_life or None
    if not patch:
        raise ClientError("Name at least one setting to change: engram collection set --help.")
    document = client.send("PATCH", build_path("collections", collection), json=patch)
    yield document
    _say_collection(document)


def _kind_reason(document: dict[str, Any]) -> str:
    """Why a collection is of its kind."""
    match document["kind_source"]:
        case "setting":
            return "as set"
        case "questions" if document["question_share"] is not None:
            share = f"{document['question_share']:.0%} of {document['question_count']}"
            return f"by its questions ({share} name what a candidate is titled after)"
        case "titles" if document["title_share"] is not None:
            return f"by its titles ({document['title_share']:.0%} of passages titled after their subject)"
        case "default":
            return "as long as nothing was measured"
        case _:  # the shares are of what the caller does not see, too
            return "by what it holds"


def _document(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ClientError(f"{path}: not JSON") from error


def _say_collection(document: dict[str, Any]) -> None:
    counts = ", ".join(f"{document[f'{kind}_count']} {plural}" for kind, plural in PLURALS.items())
    serving = "in shadow: it learns, and serves without memory" if document["serving"] == "shadow" else "live"
    say(f"{document['name']}: {counts}; {serving}")
    say(f"     ranked as {document['corpus_kind']}, {_kind_reason(document)}")
    if document["languages"]:
        counted = (f"{language} {passages}" for language, passages in document["languages"].items())
        say(f"     languages: {', '.join(counted)}")
    if document["link_template"] is not None:
        say(f"     links: {document['link_template']}")
    if document["newer_half_life_days"] is not None:
        say(f"     newer texts are preferred: half hold no more after {document['newer_half_life_days']:g} days")
    for arm in (document["experiment"] or {}).get("arms", []):
        say(
            f"     arm {arm['name']}: {arm['percent']:g}%, memory {arm['memory']}, profile {arm['profile']}, "
            f"strategy {arm['strategy']}"
        )
    exploration = document["exploration"]
    if exploration is not None:
        seed = "" if exploration["seed"] is None else f", seed {exploration['seed']}"
        say(f"     explores in {exploration['share']:.2%} of queries, last positions: {exploration['slots']}{seed}")
