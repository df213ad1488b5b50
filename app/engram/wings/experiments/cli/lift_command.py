"""The command that compares the arms of an experiment."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from engram.cli.http_client import Client, build_path
from engram.cli.service_commands import service_command
from engram.cli.terminal import LEARNT, CollectionOption, cli, say, say_table

FIGURES = ("retrieval_success", "evidence_recall", "reciprocal_rank", "generation_success", "hops")
HEADINGS = ("arm", "queries", "judged", "unjudged", *(name.replace("_", " ") for name in FIGURES), "median ms")


@cli.command(rich_help_panel=LEARNT)
@service_command
def lift(
    client: Client,
    collection: CollectionOption = "default",
    since: Annotated[str | None, typer.Option("--from", help="Answered since, as 2026-05-01T00:00:00Z.")] = None,
    before: Annotated[str | None, typer.Option("--to", help="Answered before that.")] = None,
    baseline: Annotated[
        str | None, typer.Option(help="The arm to compare the others with; the experiment's first by default.")
    ] = None,
) -> Iterator[Any]:
    """Compare the arms of a collection's experiment by what verdicts say of their queries."""
    params = {"from": since, "to": before, "baseline": baseline}
    report = client.send("GET", build_path("collections", collection, "lift"), params=params)
    yield report
    say_table([HEADINGS, *map(_cells, report["arms"])], "<" + ">" * (len(HEADINGS) - 1))
    for arm in report["arms"]:
        for figure in FIGURES:
            if arm[figure]["difference"] is not None:
                say(_difference(_name(arm), report["baseline"], figure, arm[figure]["difference"]))
    never = sum(arm["unjudged"] for arm in report["arms"])
    query_count = sum(arm["queries"] for arm in report["arms"])
    say(f"never judged: {never} of {query_count}; they need not be like the judged queries")


def _name(arm: dict[str, Any]) -> str:
    return "(no arm)" if arm["arm"] is None else str(arm["arm"])


def _cells(arm: dict[str, Any]) -> tuple[str, ...]:
    figures = (_number(arm[figure]["mean"], 3) for figure in FIGURES)
    counts = (str(arm[count]) for count in ("queries", "judged", "unjudged"))
    return (_name(arm), *counts, *figures, _number(arm["median_total_ms"], 1))


def _difference(arm: str, baseline: str, figure: str, difference: dict[str, Any]) -> str:
    bounds = (
        "too few queries for an interval"
        if difference["low"] is None
        else f"95% interval {difference['low']:+.3f} to {difference['high']:+.3f}"
    )
    return f"{arm} less {baseline}, {figure.replace('_', ' ')}: {difference['value']:+.3f} ({bounds})"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
