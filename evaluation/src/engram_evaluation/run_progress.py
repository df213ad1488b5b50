"""Progress bars of long runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

Begin = Callable[[str, int], Callable[[], None]]
"""Announces a stretch of so many steps; what it returns is called after each."""


@contextmanager
def progress(console: Console) -> Iterator[Progress]:
    """Bars for the block."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    # A file shows them once, at the end: to draw them ten times a second would be for nobody.
    with Progress(*columns, console=console, auto_refresh=console.is_terminal) as progress:
        yield progress


def ticks(bars: Progress, label: str) -> Callable[[int, int], None]:
    """A bar that is told how much is done and of how much."""
    task = bars.add_task(label, total=None)
    return lambda done, total: bars.update(task, completed=done, total=total)


def steps(bars: Progress, label: str, total: int) -> Callable[[], None]:
    """A bar that is told of each step."""
    task = bars.add_task(label, total=total)
    return lambda: bars.advance(task)
