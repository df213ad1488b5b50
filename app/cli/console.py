"""What all commands share: the Typer application, the two consoles, common options, settings."""

import json
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console

from app import logs
from app.client import Client
from app.settings import Settings

cli = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Engram: retrieval that learns from being used.",
)
_out = Console(soft_wrap=True)
err = Console(stderr=True, soft_wrap=True)

CollectionOption = Annotated[str, typer.Option("--collection", "-c", help="The collection's name.")]
UrlOption = Annotated[str | None, typer.Option(help="Where the service is; ENGRAM_URL sets it as well.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the service's JSON as it is.")]


def settings() -> Settings:
    """The configuration; logs go where it says from here on."""
    loaded = Settings()
    logs.configure(loaded.log_format, loaded.log_level)
    return loaded


def base_url(url: str | None) -> str:
    """Where the service is: as said, else as configured."""
    return (url or settings().base_url).rstrip("/")


def access_key() -> str | None:
    """The access key that requests are made with, if one is configured."""
    key = settings().access_key
    return None if key is None else key.get_secret_value()


def client_of(url: str | None) -> Client:
    """A client of the service, with the access key that is configured."""
    return Client(base_url(url), access_key())


def say(text: str) -> None:
    """One line for the caller, as it stands."""
    _out.print(text, markup=False, highlight=False, emoji=False)


def say_table(rows: Sequence[Sequence[str]], sides: str) -> None:
    """Rows in aligned columns; ``sides`` has a sign for each, as formats do: "<" to the left, ">" to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True))
        say("  ".join(cells).rstrip())


def figures(found: dict[str, Any], before: str = "") -> list[list[str]]:
    """Every figure of nested ones by the names that lead to it."""
    rows: list[list[str]] = []
    for name, value in found.items():
        if isinstance(value, dict):
            rows += figures(value, f"{before}{name}, ")
        else:
            rows.append([f"{before}{name}", f"{value:.3f}" if isinstance(value, float) else _text(value)])
    return rows


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def complain(text: str) -> None:
    """One line about what went wrong, as it stands."""
    err.print(" ".join(text.split()), markup=False, highlight=False, emoji=False)


def say_json(value: Any) -> None:
    """The service's answer, indented."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
