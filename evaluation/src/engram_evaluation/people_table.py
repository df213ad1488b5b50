"""Table of what verdicts change by the words of real people: raters, and assessors who graded answers."""

from collections.abc import Iterator, Sequence

from engram_evaluation import ratings_table
from engram_evaluation.change_table import GroupChange
from engram_evaluation.report_files import ReportExtract
from engram_evaluation.report_table import Grid

TITLE = "Real people"
LEGEND = """\
nDCG@10 before and after, by what people said: ratings of passages (protocol human; everything else: by labels), or
answers that assessors found good. Paraphrases are other people's wordings of the judged questions."""
HEADINGS = ("data set: group", "n", "before", "after", "95% interval of the change", "memory off", "gain", "lose")


def build_grid(reports: Sequence[ReportExtract]) -> Grid | None:
    """Build the table, a line for each group of each run; None where no run rests on ratings or grades."""
    rows = [
        [
            f"{report.dataset}: {change.group}",
            str(change.questions),
            f"{change.before:.3f}",
            f"{change.after:.3f}",
            f"{change.low:+.3f} to {change.high:+.3f}",
            "" if change.off is None else f"{change.off:.3f}",
            str(change.gained),
            str(change.lost),
        ]
        for report in reports
        for change in _select(report)
    ]
    return Grid(HEADINGS, rows) if rows else None


def _select(report: ReportExtract) -> Iterator[GroupChange]:
    """The changes of nDCG@10 of a run: by ratings where there are any, else by labels of graded passages."""
    if not any(change.metric == "graded" for change in report.changes):
        return
    for change in report.changes:
        is_rated = report.protocol == "human" and change.group != ratings_table.OTHER_GROUP
        if change.metric == ("graded" if is_rated else "ndcg@10"):
            yield change
