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

from engram.cli.terminal import escape_controls


class Label(TextColumn):
    """Label of a task, such as a file's name, with control characters in a visible form."""

    def render(self, task: Task) -> Text:
        """Render the label."""
        return Text(escape_controls(task.description))


class Rate(ProgressColumn):
    """Recent number of items per second."""

    def render(self, task: Task) -> Text:
        """Render the rate; empty until it is known."""
        speed = task.finished_speed or task.speed
        return Text("" if not speed else f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.1f}/s")


def progress_bar(console: Console) -> Progress:
    """Make a bar with progress, rate, elapsed and remaining time of a job."""
    columns = (
        Label("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console)
