"""Column ``gain_budgets`` of the states that verdicts move."""

from collections.abc import Sequence
from typing import Any

from engram.core.filter.state_rows import NO_SHARES, RemainingShares
from engram.storage.column_parameters import Documents


def list_gain_budgets(values: Sequence[Any]) -> tuple[list[str], list[RemainingShares]]:
    """Read the days and remaining shares of gain budgets, as ``gain_budgets_as_json`` writes them."""
    return [value.get("day", "") for value in values], [value.get("kept", NO_SHARES) for value in values]


def gain_budgets_as_json(days: Sequence[str], shares: Sequence[RemainingShares]) -> Documents:
    """Make the JSON of column ``gain_budgets``; PostgreSQL keeps every bit of a float."""
    return Documents([{"day": day, "kept": own} if own else {} for day, own in zip(days, shares, strict=True)])
