"""Commands about judges: who they are, and how far each counts."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from engram.cli.command_groups import judges_group
from engram.cli.http_client import ClientError, build_path
from engram.cli.terminal import (
    CollectionOption,
    JsonOption,
    UrlOption,
    open_client,
    say,
    say_json,
    say_table,
)

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
    "ranking",
    "weight",
)
FIELDS = (
    "observation_noise_positive",
    "observation_noise_negative",
    "daily_share",
    "contested_share",
    "daily_comparisons",
)


@judges_group.command("list")
def list_judges(
    collection: CollectionOption = "default",
    after: Annotated[str | None, typer.Option(help="Judges after this name.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Judges shown, in name order.")] = 100,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show who judges, and how far each counts; what is a judge's own has a star."""
    params = {"limit": limit} | ({} if after is None else {"after": after})
    with open_client(url) as client:
        page = client.send("GET", build_path("collections", collection, "judges"), params=params)
    if as_json:
        say_json(page)
    elif not page["judges"]:
        say(f"{collection}: no judges")
    else:
        say_table([HEADINGS, *map(_cells, page["judges"])], "<>>>>>>>>>>")
        if page["next_after"] is not None:
            say(f"there may be more: --after {page['next_after']!r}")


@judges_group.command("set")
def set_judge(
    judge: Annotated[str, typer.Argument(help="The judge's name.")],
    positive: Annotated[float | None, typer.Option(help="R_pos: unreliability of its support.")] = None,
    negative: Annotated[float | None, typer.Option(help="R_neg: unreliability of its rejections.")] = None,
    share: Annotated[
        float | None, typer.Option(help="Most of the distance to its verdicts that it closes of a memory in a day.")
    ] = None,
    contested: Annotated[float | None, typer.Option(help="The same against what other judges said.")] = None,
    comparisons: Annotated[int | None, typer.Option(help="Verdicts a day that teach the ranking.")] = None,
    trusted: Annotated[
        bool | None,
        typer.Option("--trusted/--untrusted", help="Whether it counts in full, whoever brings its verdicts."),
    ] = None,
    like_all: Annotated[bool, typer.Option("--like-all", help="Let it be as every other judge.")] = False,
    collection: CollectionOption = "default",
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set how far a judge counts from now on; what is not said is as for every judge."""
    given: Iterable[tuple[str, Any]] = zip(FIELDS, (positive, negative, share, contested, comparisons), strict=True)
    body = {name: value for name, value in given if value is not None}
    if trusted is not None:
        body["trusted"] = trusted
    if like_all == bool(body):
        raise ClientError("Say what is to differ for this judge, or else --like-all.")
    with open_client(url) as client:
        judge_out = client.send("PUT", build_path("collections", collection, "judges", judge), json=body)
    if as_json:
        say_json(judge_out)
    else:
        say_table([HEADINGS, _cells(judge_out)], "<>>>>>>>>>>")


def _cells(judge: dict[str, Any]) -> list[str]:
    values = ("-" if judge["constants"][name] is None else f"{judge['constants'][name]:g}" for name in FIELDS)
    stars = ("*" if name in judge["set"] else "" for name in FIELDS)
    counts = (str(judge[status]) for status in ("applied", "pending", "parked", "revoked"))
    weight = "trusted" if "trusted" in judge["set"] else f"{judge['standing']['weight']:.2f}"
    cells = (value + star for value, star in zip(values, stars, strict=True))
    return [judge["judge"], *counts, *cells, weight]
