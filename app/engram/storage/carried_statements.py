"""Statements that others carry along: what goes to the database together costs one way there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CarriedStatement:
    """A statement of few rows that is read with another one, whose parameters it shares.

    Attributes:
        statement: its rows come back as JSON, column by name, numbers to the bit.
        parameters: those that the other one lacks.
    """

    statement: str
    parameters: Mapping[str, Any]

    @property
    def column(self) -> str:
        """Return the column that its carrier selects."""
        return as_rows(self.statement)


def as_rows(statement: str) -> str:
    """A column of all rows of a statement; None, not empty, if there is none."""
    return f"(SELECT json_agg(row) FROM ({statement}) AS row)"
