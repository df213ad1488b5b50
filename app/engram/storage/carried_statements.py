"""Statements that another statement carries as a column, so that both take one round trip to the database."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CarriedStatement:
    """A statement of few rows that is read with another one, whose parameters it shares.

    Attributes:
        statement: SQL whose rows come back as JSON objects, numbers to the bit.
        parameters: parameters that the other statement lacks.
    """

    statement: str
    parameters: Mapping[str, Any]

    @property
    def column(self) -> str:
        """Return the SQL of the column by which the other statement reads this one's rows."""
        return as_rows(self.statement)


def as_rows(statement: str) -> str:
    """Return the SQL of a column with all rows of a statement; the column is null if there is no row."""
    return f"(SELECT json_agg(row) FROM ({statement}) AS row)"
