"""Progress bars, imported only where one is shown."""

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class Rate(ProgressColumn):
    """Recent number of items per second."""

    def render(self, task: Task) -> Text:
        """Render the rate; empty until it is known."""
        speed = task.finished_speed or task.speed
        return Text("" if not speed else f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.1f}/s")


def progress_bar(console: Console) -> Progress:
    """Make a bar with progress, rate, elapsed and remaining time of a job."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console)
