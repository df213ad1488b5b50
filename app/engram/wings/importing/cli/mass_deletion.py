"""Deletions so many that a missing folder, and no person, may be their cause."""

import sys
from typing import Annotated

import typer

from engram.cli.terminal import complain

LEAST = 2
LARGEST_SHARE = 0.1
MOST = 100
"""More documents than this are many in any folder."""

AllowOption = Annotated[
    bool,
    typer.Option(
        "--allow-mass-deletion",
        help="Delete also where more than 100 documents, or a tenth of a folder's and at least 2, are gone.",
    ),
]


def is_mass(deleted: int, remaining: int) -> bool:
    """Whether so many documents of a folder are gone that somebody should confirm it."""
    return deleted >= LEAST and (deleted > MOST or deleted >= LARGEST_SHARE * (deleted + remaining))


def confirm(deleted: int, remaining: int, *, allowed: bool, may_ask: bool) -> bool:
    """Whether to delete: what is not many, and what was allowed or is confirmed at a terminal."""
    if allowed or not is_mass(deleted, remaining):
        return True
    question = f"{deleted} of {deleted + remaining} documents are no longer in the folder. Delete them?"
    if may_ask and sys.stdin.isatty() and typer.confirm(question, err=True):
        return True
    complain(
        f"nothing is deleted: {deleted} of {deleted + remaining} documents are no longer in the folder. If that is "
        "right, give --allow-mass-deletion."
    )
    return False
