"""The verdicts behind an answer, as lines of its trace."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from engram.cli.terminal import format_count, quote_text, say, shorten

FACTORS = 6
"""Features of a passage that are shown, those that make most of its score."""


def say_sentence_causes(row: Mapping[str, Any]) -> None:
    """The verdicts behind a selected sentence of a trace."""
    for influence in row["influences"]:
        parts = (("score", influence["score"]), ("recall", influence["recall_probability"]))
        changes = ", ".join(f"{name} {value:+.3f}" for name, value in parts if value)
        say(f"          {changes} {_format_cause(influence)}")
    if row["influences_cut"]:
        say("          and more")


def say_passage_causes(passages: list[dict[str, Any]] | None) -> None:
    """Print the effects of memory on the passages of a trace, and the other parts of their scores."""
    for row in passages or []:
        plain = row["rank_without_memory"]
        without = "not among the candidates without memory" if plain is None else f"{plain} without memory"
        say(
            f"{row['passage_id']}: rank {row['rank']}, {without}; score {row['score']:.3f}, of it recall "
            f"{row['recall']:+.3f}"
        )
        since = row["text_since"]
        for line in _key_lines(row["key"], since):
            say(f"     {line}")
        for influence in row["influences"]:
            parts = ((name, influence[name]) for name in ("memory", "recall"))
            changes = ", ".join(f"{name} {value:+.3f}" for name, value in parts if value)
            say(f"     {influence['score']:+.3f} {_format_cause(influence, since)} ({changes})")
        if row["influences_cut"]:
            say("     and more")
        for line in _factor_lines(row["features"], row["completes"]):
            say(f"     {line}")


def say_rejections(rejected: list[dict[str, Any]] | None) -> None:
    """Print which passages judges rejected, and by which verdicts."""
    for row in rejected or []:
        place = "not shown" if row["rank"] is None else f"rank {row['rank']}"
        judges = "judges" if row["judges"] is None else format_count(row["judges"], "judge")
        say(f"{row['passage_id']}: {judges} said that this is not it; {place}, score {row['score']:+.3f}")
        for influence in row["influences"]:
            say(f"     {influence['score']:+.3f} {_format_cause(influence)}")
        if row["influences_cut"]:
            say("     and more")


def say_judgements(judgements: list[dict[str, Any]]) -> None:
    """Print the verdicts on earlier answers to the question that changed its sufficiency."""
    for one in judgements:
        say(f"     sufficiency {one['probability']:+.3f} {_format_cause(one)}")


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


def _key_lines(key: Mapping[str, Any] | None, since: str) -> Iterator[str]:
    if key is None:
        return
    yield f"key: similarity {key['similarity']:.3f}, of the base key {key['base_similarity']:.3f}"
    for unit in key["units"]:
        yield f"     {unit['share']:.0%} unit {unit['unit_id']}, {unit['method']}: {quote_text(unit['text'])}"
        for event in unit["events"]:
            yield f"          credit {event['gain'] * event['weight']:.3f} {_format_cause(event, since)}"
        if unit["event_count"] > len(unit["events"]):
            yield f"          and {unit['event_count'] - len(unit['events'])} more verdicts"


def _format_cause(cause: Mapping[str, Any], text_since: str | None = None) -> str:
    """The verdict in words; ``text_since``: when the text that it bears on became what it is."""
    judge, question = shorten(cause["judge"], 40), quote_text(cause["question"])
    is_earlier = text_since and datetime.fromisoformat(cause["applied_at"]) < datetime.fromisoformat(text_since)
    earlier = ", on an earlier text of the passage" if is_earlier else ""
    return f"by feedback {cause['feedback_id']} of judge {judge}: {question}{earlier}"
