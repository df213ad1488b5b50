"""Notes of an import: lines that say what was left out, and where."""

from collections.abc import Sequence

MOST_NAMES = 100
"""Names of files of one kind that a run leaves out and names, at most."""
_SHOWN = 5


def list_some(items: Sequence[object], most: int = _SHOWN) -> str:
    """The first items, and how many more there are: ``3, 5, 9 and 40 more``."""
    more = len(items) - most
    return ", ".join(map(str, items[:most])) + (f" and {more} more" if more > 0 else "")
