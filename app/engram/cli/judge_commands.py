"""Commands about judges: who they are, and how far each counts."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from engram.cli.command_groups import judges_group
from engram.cli.http_client import Client, ClientError, build_path, drop_unset
from engram.cli.service_commands import service_command
from engram.cli.terminal import CollectionOption, say, say_table

HEADINGS = (
    "judge",
    "applied",
    "pending",
    "parked",
    "revoked",
    "R+",
    "R-",
    "a day",
    "contested",
    "teaching",
    "weight",
)
FIELDS = (
    "observation_noise_positive",
    "observation_noise_negative",
    "daily_share",
    "contested_share",
    "daily_weight_verdicts",
)


@judges_group.command("list")
@service_command
def list_judges(
    client: Client,
    collection: CollectionOption = "default",
    after: Annotated[str | None, typer.Option(help="Judges after this name.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Judges shown, in name order.")] = 100,
) -> Iterator[Any]:
    """Show who judges, and how far each counts. A star marks what was set for this judge."""
    path = build_path("collections", collection, "judges")
    page = client.send("GET", path, params={"limit": limit, "after": after})
    yield page
    if not page["judges"]:
        say(f"{collection}: no judges")
    else:
        say_table([HEADINGS, *map(_cells, page["judges"])], "<>>>>>>>>>>")
        if page["next_after"] is not None:
            say(f"more: --after {page['next_after']!r}")


@judges_group.command("set")
@service_command
def set_judge(
    client: Client,
    judge: Annotated[str, typer.Argument(help="The judge's name.")],
    positive: Annotated[float | None, typer.Option(help="R_pos: unreliability of its support.")] = None,
    negative: Annotated[float | None, typer.Option(help="R_neg: unreliability of its rejections.")] = None,
    share: Annotated[
        float | None, typer.Option(help="Most of the distance to its verdicts that it closes of a memory in a day.")
    ] = None,
    contested: Annotated[float | None, typer.Option(help="The same against what other judges said.")] = None,
    weight_verdicts: Annotated[int | None, typer.Option(help="Verdicts a day that teach sufficiency.")] = None,
    trusted: Annotated[
        bool | None,
        typer.Option("--trusted/--untrusted", help="Whether it counts in full, whoever brings its verdicts."),
    ] = None,
    like_all: Annotated[bool, typer.Option("--like-all", help="Let it be as every other judge.")] = False,
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Set how far a judge counts from now on. What you leave out is as for every judge."""
    values = (positive, negative, share, contested, weight_verdicts)
    body = drop_unset(dict(zip(FIELDS, values, strict=True)) | {"trusted": trusted})
    if like_all == bool(body):
        raise ClientError("Say what is to differ for this judge, or else --like-all.")
    judge_out = client.send("PUT", build_path("collections", collection, "judges", judge), json=body)
    yield judge_out
    say_table([HEADINGS, _cells(judge_out)], "<>>>>>>>>>>")


def _cells(judge: dict[str, Any]) -> list[str]:
    values = ("-" if judge["constants"][name] is None else f"{judge['constants'][name]:g}" for name in FIELDS)
    stars = ("*" if name in judge["set"] else "" for name in FIELDS)
    counts = (str(judge[status]) for status in ("applied", "pending", "parked", "revoked"))
    weight = "trusted" if judge["trusted"] else f"{judge['standing']['weight']:.2f}"
    cells = (value + star for value, star in zip(values, stars, strict=True))
    return [judge["judge"], *counts, *cells, weight]
