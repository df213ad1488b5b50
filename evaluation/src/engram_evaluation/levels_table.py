"""Table of ``levels``: a line for each combination of levels of learning, a column for each group of questions."""

from collections.abc import Sequence

from engram_evaluation.report_table import Grid, SummaryLine, cell

BEFORE = "before any verdict"
METRICS = "R@5 (nDCG@10)"
LEGEND = """\
After the last turn of verdicts. all levels: as shipped, with passage keys where the data set has expansions.
without: that level learns nothing. alone: no other level learns. sentence memories: those of the task and of time.
sharing a passage: questions that share a relevant passage with a judged one. After a group: its questions."""


def build_grids(lines: Sequence[SummaryLine]) -> list[Grid]:
    """Build the table: each group before any verdict, then after by each combination."""
    counts = {line.group: line.questions for line in lines}
    return [Grid([METRICS, *(f"{group} ({count})" for group, count in counts.items())], _rows(lines, [*counts]))]


def _rows(lines: Sequence[SummaryLine], groups: Sequence[str]) -> list[list[str]]:
    last = max((line.turn for line in lines), default=0)
    before = {line.group: _write(line) for line in lines if not line.turn}
    after = {(line.arm, line.group): _write(line) for line in lines if line.turn == last}
    table = [[BEFORE, *(before.get(group, "") for group in groups)]]
    for arm in dict.fromkeys(arm for arm, _ in after):
        table.append([arm, *(after.get((arm, group), "") for group in groups)])
    return table


def _write(line: SummaryLine) -> str:
    return f"{cell(line.values, 'recall@5')} ({cell(line.values, 'ndcg@10')})"
