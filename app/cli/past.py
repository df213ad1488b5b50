"""The command that brings back what a collection had learned at a past moment."""

import threading
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import TaskID

from app.cli.console import cli, say, say_json, settings
from app.cli.processes import on_stop
from app.cli.requests import progress_bar
from app.errors import InvalidRequestError, UnavailableError

if TYPE_CHECKING:
    from app.services.undo.as_of import Past


@cli.command()
def replay(
    collection: Annotated[str, typer.Argument(help="The collection's name.")],
    until: Annotated[str, typer.Option(metavar="TIME", help="The moment, with its offset: 2026-05-01T12:00:00Z.")],
    into: Annotated[
        str | None, typer.Option(metavar="NAME", help="The new collection; named by the moment by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Make a collection of what another had learned at a past moment, to compare with it or to go back to.

    It holds the same passages and the verdicts that counted then, and serves without memory until it is switched
    live. The collection itself is left alone.
    """
    from app.composition import application

    moment = _moment(until)
    stopping = threading.Event()
    progress = progress_bar()
    tasks: dict[str, TaskID] = {}

    def show(stage: str, done: int, of: int) -> None:
        progress.start()  # not before there is something to show
        if stage not in tasks:
            tasks[stage] = progress.add_task(stage)
        progress.update(tasks[stage], total=of, completed=done)

    with application(settings()) as services:
        on_stop(stopping.set)
        try:
            past = services.past.replay(services.access.scope(collection), moment, into, show, stopping.is_set)
        except UnavailableError as error:
            if stopping.is_set():
                raise UnavailableError("Stopped before the end; no collection was made.") from error
            raise
        finally:
            if tasks:
                progress.stop()
    if as_json:
        say_json(asdict(past) | {"until": past.until.isoformat()})
    else:
        _print(past)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidRequestError(f"--until {text}: must be a date and time with its offset: 2026-05-01T12:00:00Z.")
    return moment


def _print(past: "Past") -> None:
    say(f"{past.collection}: {past.of} as of {past.until.isoformat()}")
    say(f"     {past.passages} passages")
    _remark(past.passages_since, "that came since are left out")
    _remark(past.passages_updated, "that changed since are as they are now")
    say(f"     {past.events} verdicts")
    _remark(past.events_restored, "of them were revoked since")
    _remark(past.sentences_gone, "sentences that they speak of are not there")
    say(f"     key generation {past.key_generation}")
    if not past.key_generation_certain:
        say("         or another one: keys were rolled back, and it is not recorded when")
    for table, rows in past.learned.items():
        say(f"     {rows} rows of {table}")


def _remark(count: int, text: str) -> None:
    if count:
        say(f"         {count} {text}")
