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
    """Make the service's filter of conditions ``topic=space`` and JSON objects; all of them must hold.

    Raises:
        ClientError: a condition is neither, or two of them name the same key.
    """
    metadata: dict[str, Any] = {}
    for condition in conditions or ():
        members = _read_condition(condition)
        repeated = next((key for key in members if key in metadata), None)
        if repeated is not None:
            raise ClientError(
                f"--filter {condition!r}: an earlier --filter has a condition on {repeated!r} already."
            )
        metadata |= members
    return metadata or None


def _read_condition(condition: str) -> dict[str, Any]:
    """Read ``topic=space`` or a JSON object as metadata that a passage must have.

    Raises:
        ClientError: it is neither.
    """
    key, equals, value = condition.partition("=")
    if condition.lstrip().startswith("{"):
        document = _json(condition, None)
        if not isinstance(document, dict):
            raise ClientError(f"--filter {condition!r} is no JSON object.")
        return document
    if not equals or not key.strip():
        raise ClientError(f"--filter {condition!r}: say it as topic=space, or as a JSON object.")
    return {key.strip(): _json(value, value)}


def _json(text: str, otherwise: Any) -> Any:
    """Return the text's JSON value, or ``otherwise`` if it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise
