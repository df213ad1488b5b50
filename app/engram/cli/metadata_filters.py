"""Conditions on metadata, as the command line takes them."""

import json
from typing import Annotated, Any

import typer

from engram.cli.http_client import ClientError

FilterOption = Annotated[
    list[str] | None,
    typer.Option("--filter", help="Only passages with this in their metadata: topic=space, or JSON. Repeatable."),
]


def as_filter(conditions: list[str] | None) -> dict[str, Any] | None:
    """``topic=space``, or a JSON object, as the service takes it; all of them must hold.

    Raises:
        ClientError: one is neither.
    """
    wanted: dict[str, Any] = {}
    for condition in conditions or ():
        name, equals, value = condition.partition("=")
        if condition.lstrip().startswith("{"):
            document = _json(condition, None)
            if not isinstance(document, dict):
                raise ClientError(f"--filter {condition!r} is no JSON object.")
            wanted |= document
        elif equals and name.strip():
            wanted[name.strip()] = _json(value, value)
        else:
            raise ClientError(f"--filter {condition!r}: say it as topic=space, or as a JSON object.")
    return wanted or None


def _json(text: str, otherwise: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise
