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

from engram.cli.terminal import visible


class Label(TextColumn):
    """Label of a task, such as a file's name, with control characters in a visible form."""

    def render(self, task: Task) -> Text:
        """Render the label."""
        return Text(visible(task.description))


class Rate(ProgressColumn):
    """How many are done in a second, of late."""

    def render(self, task: Task) -> Text:
        """Nothing until it can be told."""
        speed = task.finished_speed or task.speed
        return Text("" if not speed else f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.1f}/s")


def progress_bar(console: Console) -> Progress:
    """How much of a job is done, how fast it goes, and how long it has taken and will take."""
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
