"""Notes of an import: lines that say what was left out, and where."""

from collections.abc import Sequence

_SHOWN = 5


def list_some(items: Sequence[object]) -> str:
    """The first items, and how many more there are: ``3, 5, 9 and 40 more``."""
    more = len(items) - _SHOWN
    return ", ".join(map(str, items[:_SHOWN])) + (f" and {more} more" if more > 0 else "")
