"""Shared parts of commands: the Typer application, the two consoles, common options, settings."""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from engram.config.data_folder import ADDRESS_FILE, DATA_FOLDER
from engram.config.url_hosts import format_host

if TYPE_CHECKING:
    from rich.console import Console

    from engram.cli.http_client import Client
    from engram.config.settings import Settings

# Headings of `engram --help`, in this order.
ASK = "Ask and judge"
STOCK = "Passages, jobs and collections"
LEARNT = "What was learned, and whom to believe"
RUN = "Run the service"
MEASURE = "Measure"
HEADINGS = (ASK, STOCK, LEARNT, RUN, MEASURE)

QUOTED_CHARACTERS = 60
"""Characters of a quoted text that are shown."""


# What people type who do not know the command's name yet.
OTHER_NAMES = {
    "add": "ingest",
    "adopt": "fact merge",
    "align": "fact align",
    "convert": "import",
    "documents": "import",
    "index": "ingest",
    "load": "ingest",
    "upload": "import",
    "search": "query",
    "find": "query",
    "chat": "ask",
    "vote": "feedback",
    "rate": "feedback",
    "collections": "collection list",
    "delete": "collection delete",
    "drop": "collection delete",
    "enough": "sufficiency",
    "evolve": "passage-key evolve",
    "facts": "fact search",
    "jobs": "job list",
    "key": "passage-key show",
    "keygen": "access create-key",
    "keys": "passage-key status",
    "list": "collection list",
    "ls": "collection list",
    "passages": "passage list",
    "predicate": "fact predicate",
    "reembed": "collection reembed",
    "rekey": "collection rekey",
    "remove": "passage delete",
    "retry": "parked retry",
    "revise": "fact revise",
    "rm": "passage delete",
    "rollback": "passage-key rollback",
    "sessions": "session list",
    "set-judge": "judges set",
    "state": "fact add",
    "unsay": "fact retract",
    "run": "up",
    "start": "up",
    "health": "status",
    "undo": "revoke",
    "explain": "query --trace",
    "version": "--version",
    "help": "--help",
}


class HeadingGroup(TyperGroup):
    """Commands under the headings of `HEADINGS`, in that order."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; for an unknown name, say which command does what the name means."""
        name = args[0]
        if name not in self.commands and (hint := _hint(name)):
            ctx.fail(f"No such command '{name}'. {hint}")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """Names, those of one heading together."""
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: HEADINGS.index(vars(self.commands[name])["rich_help_panel"]))


def _hint(name: str) -> str | None:
    """Say what to type instead of a name that is known to be looked for."""
    return f"Did you mean 'engram {OTHER_NAMES[name]}'?" if name in OTHER_NAMES else None


cli = typer.Typer(
    cls=HeadingGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Engram: retrieval that learns from being used.",
)
CollectionOption = Annotated[str, typer.Option("--collection", "-c", help="The collection's name.")]
EncoderOption = Annotated[
    str | None, typer.Option(help="The encoder of a new collection, by name; one that exists must be of it.")
]
UrlOption = Annotated[str | None, typer.Option(help="Where the service is; ENGRAM_URL sets it as well.")]
JudgeOption = Annotated[
    str | None, typer.Option("--judge", help="Who judges; by default `cli`, or the access key's judge.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the service's JSON as it is.")]


@cache
def open_console() -> "Console":
    """Standard output."""
    from rich.console import Console

    return Console(soft_wrap=True)


@cache
def err() -> "Console":
    """Standard error."""
    from rich.console import Console

    return Console(stderr=True, soft_wrap=True)


def settings() -> "Settings":
    """The configuration; logs go where it says from here on."""
    from engram.config.settings import Settings
    from engram.telemetry import logs

    loaded = Settings()
    logs.configure(loaded.log_format, loaded.log_level)
    return loaded


def base_url(url: str | None) -> str:
    """Return the service's address: the given one, else the configured one. ``http://`` may be left out."""
    address = (url or _read_configured_url()).rstrip("/")
    return address if "://" in address else f"http://{address}"


def _read_configured_url() -> str:
    """Return the configured address, as `Settings.base_url` does; else that of the service of this folder."""
    variables = _variables()
    named = any(variables.get(name) for name in ("ENGRAM_URL", "ENGRAM_HOST", "ENGRAM_PORT"))
    if not named and (running := _find_running(variables)):
        return running
    host, port = variables.get("ENGRAM_HOST", "127.0.0.1"), variables.get("ENGRAM_PORT", "8000")
    if not port.isdecimal():
        return settings().base_url  # which says what is wrong
    return variables.get("ENGRAM_URL") or f"http://{format_host(host)}:{port}"


def _find_running(variables: Mapping[str, str]) -> str | None:
    """Return where the `engram up` of this data folder answers, if one runs."""
    try:
        return (Path(variables.get("ENGRAM_DATA_DIR", DATA_FOLDER)) / ADDRESS_FILE).read_text(
            "utf-8"
        ).strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _variables() -> dict[str, str]:
    """Return the variables that settings are read from; reading all settings would double a client's start."""
    variables: dict[str, str | None] = dict(os.environ)
    if Path(".env").exists():
        from dotenv import dotenv_values

        variables = dotenv_values(".env") | variables
    return {name.upper(): value for name, value in variables.items() if value is not None}


def access_key() -> str | None:
    """The access key that requests are made with, if one is configured; as `Settings.access_key` has it."""
    return _variables().get("ENGRAM_ACCESS_KEY") or None


def judge_of(named: str | None) -> str | None:
    """Return the judge of a command's verdict: as named, else the access key's judge, else ``cli``."""
    return named if access_key() else named or "cli"


def open_client(url: str | None) -> "Client":
    """A client of the service, with the access key that is configured."""
    from engram.cli.http_client import Client

    return Client(base_url(url), access_key())


_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Characters that a terminal obeys or that change the order of others: C0 but line feed and tab, DEL, C1, marks of
direction, separators of lines, invisible tags, lone surrogates."""


def escape_controls(text: str) -> str:
    r"""Return the text with what a terminal would obey in a visible form, such as ``\x1b`` and ``\u202e``.

    Stored texts are other people's: printed as they are, they could rename the window, write to the clipboard, or
    show themselves in another order. Line feeds and tabs stay.
    """
    return _UNSEEN.sub(_escape_character, text)


def _escape_character(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def say(text: str) -> None:
    """Print one line for the caller, with control characters in a visible form."""
    open_console().print(escape_controls(text), markup=False, highlight=False, emoji=False)


def format_count(number: int, noun: str) -> str:
    """ "1 hop", "2 hops"; of words whose plural takes an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def join_lines(text: str) -> str:
    """A text in one line."""
    return " ".join(text.split())


def shorten(text: str, most: int) -> str:
    """A text in one line, cut where it is longer than that."""
    line = join_lines(text)
    return line if len(line) <= most else f"{line[: most - 3]}..."


def quote_text(text: str) -> str:
    """The beginning of a text, in one line and in quotation marks."""
    return f"'{shorten(text, QUOTED_CHARACTERS)}'"


def say_table(rows: Sequence[Sequence[str]], sides: str) -> None:
    """Rows in aligned columns; ``sides`` has a sign for each, as formats do: "<" to the left, ">" to the right."""
    rows = [[escape_controls(cell).replace("\n", "\\n").replace("\t", "\\t") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True))
        say("  ".join(cells).rstrip())


def complain(text: str) -> None:
    """Print one line about what went wrong, with control characters in a visible form."""
    err().print(escape_controls(join_lines(text)), markup=False, highlight=False, emoji=False)


def say_json(value: Any) -> None:
    """Print the service's answer, indented; characters that a terminal would obey are escaped as JSON escapes."""
    written = json.dumps(value, indent=2, ensure_ascii=False)
    sys.stdout.write(_UNSEEN.sub(lambda match: json.dumps(match[0])[1:-1], written) + "\n")
    sys.stdout.flush()  # whoever reads a pipe need not wait for the end of a long command


def say_json_line(value: Any) -> None:
    """Print a value as JSON on a line, escaped as ``say_json`` does."""
    written = json.dumps(value, ensure_ascii=False)
    sys.stdout.write(_UNSEEN.sub(lambda match: json.dumps(match[0])[1:-1], written) + "\n")


def _say_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        say(f"engram {version('engram')}")
        raise typer.Exit


@cli.callback()
def engram(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Engram: retrieval that learns from being used."""
