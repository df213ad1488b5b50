"""Charts of protocol ``unseen``: what each strategy gains by the number of verdicts."""

from collections.abc import Sequence
from pathlib import Path

from engram_evaluation import unseen_table
from engram_evaluation.report_files import ReportExtract, ReportFileError, read
from engram_evaluation.report_table import HEADINGS
from engram_evaluation.svg import Lines, draw_picture

METRIC = "recall@5"
GROUPS = (unseen_table.OTHERS, unseen_table.SHARING)
"""Groups with a chart: judged questions have none."""


def draw_unseen(folders: Sequence[Path]) -> str:
    """Draw the charts of all runs of protocol ``unseen`` as an SVG file.

    Raises:
        ReportFileError: as ``report_files.read``, or there is no such run.
    """
    runs = [run for run in read(folders).retrieval if run.protocol == "unseen"]
    if not runs:
        raise ReportFileError("No report is of --protocol unseen.")
    return draw_picture([chart for run in runs for chart in plot_gains(run)])


def plot_gains(run: ReportExtract) -> list[Lines]:
    """Plot the gains of a run, in a chart for each group; with the gate on alone."""
    drawn = []
    for group in GROUPS:
        series: dict[str, list[tuple[float, float]]] = {}
        intervals: dict[str, list[tuple[float, float]]] = {}
        for change in run.changes:
            if (change.group, change.metric) != (group, METRIC) or change.arm.endswith(unseen_table.GATE_OFF):
                continue
            series.setdefault(change.arm, [(0, 0.0)]).append((change.turn, change.after - change.before))
            intervals.setdefault(change.arm, [(0.0, 0.0)]).append((change.low, change.high))
        if series:
            title = f"{run.dataset}, {group}: gain in {HEADINGS[METRIC]}"
            drawn.append(Lines(title, "verdicts", f"gain in {HEADINGS[METRIC]}", series, intervals))
    return drawn
