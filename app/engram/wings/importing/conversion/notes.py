"""Notes of an import: lines that say what was left out, and where."""

from collections.abc import Sequence

_SHOWN = 5
_MOST_NAMES = 100


def list_some(items: Sequence[object]) -> str:
    """The first places in a document, and how many more there are: ``3, 5, 9, 12, 13 and 40 more``."""
    return _list(items, _SHOWN)


def list_names(names: Sequence[str]) -> str:
    """The first hundred names of what a run leaves out, such as files and pages, and how many more there are."""
    return _list(names, _MOST_NAMES)


def _list(items: Sequence[object], most: int) -> str:
    more = len(items) - most
    return ", ".join(map(str, items[:most])) + (f" and {more} more" if more > 0 else "")
