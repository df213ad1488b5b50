"""Commands that say why: what a sentence's memory went through, and the verdicts behind an answer."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from engram.cli.http_client import Client, build_path
from engram.cli.service_commands import service_command
from engram.cli.terminal import ASK, CollectionOption, cli, say, say_table

QUOTED_CHARACTERS = 60
"""Characters of a question that are shown."""
HEADINGS = ("feedback", "judge", "channel", "y", "gain", "residual", "perplexity", "similarity", "now", "question")


@cli.command(rich_help_panel=ASK)
@service_command
def memory(
    client: Client,
    sentence: Annotated[int, typer.Argument(min=1, metavar="ID", help="The sentence's id.")],
    query: Annotated[str | None, typer.Option(help="A text to tell how near the memory is to.")] = None,
    after: Annotated[int, typer.Option(min=0, help="Go on after this place in the order of application.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Verdicts shown, the earliest first.")] = 100,
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Show what is remembered of a sentence, and every verdict that made it so."""
    params = {"collection": collection, "after": after, "limit": limit, "query": query}
    document = client.send("GET", build_path("sentences", str(sentence), "memory"), params=params)
    yield document
    say(f"[{sentence}] {_line(document['text'])}")
    say(f"     of passage {document['passage_id']}")
    for channel in document["channels"]:
        near = ""
        if channel["similarity"] is not None:
            near = f", similarity {channel['similarity']:.3f} (began as {channel['base_similarity']:.3f})"
        say(
            f"{channel['channel']}: perplexity {channel['perplexity']:.3f}, "
            f"verdicts: {channel['update_count']}{near}"
        )
    for support in document["supports"]:
        say(
            f"supports with {support['support']:.3f} (perplexity {support['perplexity']:.3f}): "
            f"{quote_text(support['question'])}"
        )
    if document["support_count"] > len(document["supports"]):
        say(f"and {document['support_count'] - len(document['supports'])} more questions")
    rows = [_cells(event, move) for event in document["history"] for move in event["moves"]]
    if rows:
        say_table([HEADINGS, *rows], "<<<>>>>>><")
    if document["next_after"] is not None:
        say(f"there may be more: --after {document['next_after']}")


def _cells(event: Mapping[str, Any], move: Mapping[str, Any]) -> tuple[str, ...]:
    now = "" if move["similarity_now"] is None else f"{move['similarity_now']:.3f}"
    return (
        str(event["feedback_id"]),
        shorten(event["judge"], 20),
        move["channel"],
        str(move["target"]),
        f"{move['gain']:.3f}",
        f"{move['residual']:+.3f}",
        f"{move['perplexity_before']:.3f} > {move['perplexity_after']:.3f}",
        f"{move['similarity_before']:.3f} > {move['similarity_after']:.3f}",
        now,
        quote_text(event["question"]),
    )


def say_sentence_causes(row: Mapping[str, Any]) -> None:
    """The verdicts behind a selected sentence of a trace."""
    for influence in row["influences"]:
        parts = (("score", influence["score"]), ("recall", influence["recall_prior"]))
        changes = ", ".join(f"{name} {value:+.3f}" for name, value in parts if value)
        say(f"          {changes} {_format_cause(influence)}")
    if row["influences_cut"]:
        say("          and more")


FACTORS = 6
"""Features of a passage that are shown, those that make most of its score."""


def say_passage_causes(passages: list[dict[str, Any]] | None) -> None:
    """Print the effects of memory on the passages of a trace, and the other parts of their scores."""
    for row in passages or []:
        plain = row["rank_without_memory"]
        without = "not among the candidates without memory" if plain is None else f"{plain} without memory"
        say(
            f"{row['passage_id']}: rank {row['rank']}, {without}; score {row['score']:.3f}, of it recall "
            f"{row['recall']:+.3f}"
        )
        for line in _key_lines(row["key"]):
            say(f"     {line}")
        for influence in row["influences"]:
            parts = ((name, influence[name]) for name in ("memory", "recall"))
            changes = ", ".join(f"{name} {value:+.3f}" for name, value in parts if value)
            say(f"     {influence['score']:+.3f} {_format_cause(influence)} ({changes})")
        if row["influences_cut"]:
            say("     and more")
        for line in _factor_lines(row["features"], row["completes"]):
            say(f"     {line}")


def _factor_lines(features: Mapping[str, Mapping[str, float]], completes: str | None) -> Iterator[str]:
    """Yield lines of factors; none where features do not rank."""
    added = {name: one["value"] * one["weight"] for name, one in features.items()}
    strongest = sorted(added, key=lambda name: (-abs(added[name]), name))
    factors = [f"{name} {added[name]:+.3f}" for name in strongest[:FACTORS]]
    if strongest[FACTORS:]:
        factors.append(f"{len(strongest) - FACTORS} more {sum(added[name] for name in strongest[FACTORS:]):+.3f}")
    if factors:
        yield f"features: {', '.join(factors)}"
    if completes is not None:
        yield f"completes {completes}"


def _key_lines(key: Mapping[str, Any] | None) -> Iterator[str]:
    if key is None:
        return
    yield f"key: similarity {key['similarity']:.3f}, of the base key {key['base_similarity']:.3f}"
    for unit in key["units"]:
        yield f"     {unit['share']:.0%} unit {unit['unit_id']}, {unit['method']}: {quote_text(unit['text'])}"
        for event in unit["events"]:
            yield f"          credit {event['gain'] * event['weight']:.3f} {_format_cause(event)}"
        if unit["event_count"] > len(unit["events"]):
            yield f"          and {unit['event_count'] - len(unit['events'])} more verdicts"


def _format_cause(cause: Mapping[str, Any]) -> str:
    judge, question = shorten(cause["judge"], 40), quote_text(cause["question"])
    return f"by feedback {cause['feedback_id']} of judge {judge}: {question}"


def quote_text(text: str) -> str:
    """The beginning of a text, in one line and in quotation marks."""
    return f"'{shorten(text, QUOTED_CHARACTERS)}'"


def shorten(text: str, most: int) -> str:
    """A text in one line, cut where it is longer than that."""
    line = _line(text)
    return line if len(line) <= most else f"{line[: most - 3]}..."


def _line(text: str) -> str:
    return " ".join(text.split())
