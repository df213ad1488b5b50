"""Charts of a section: lines where there are turns, bars where arms are compared."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from engram_evaluation import adapt_table, ratings_table, unseen_table
from engram_evaluation.branches import Branches
from engram_evaluation.report_files import ReportExtract, ReportFileError, read
from engram_evaluation.report_sections import Section
from engram_evaluation.report_table import HEADINGS, MARKS, TableLine
from engram_evaluation.svg import Bars, Chart, Lines, draw_picture

METRIC = "recall@5"
TURNS = "turns of verdicts"

Values = Mapping[tuple[str, str, int], Mapping[str, float]]
"""(arm, group, turn) -> metrics."""


def charts(section: Section) -> list[Chart]:
    """The charts of a section."""
    drawers = {"cold": _side_by_side, "session": _side_by_side, "answers": _marks}.get(section.protocol)
    if drawers is not None:
        return [drawers(section.runs), *_trees(section.runs)]
    each: Mapping[str, Callable[[ReportExtract], Sequence[Chart]]] = {
        "adapt": _keys,
        "human": _rules,
        "clicks": _stretches,
        "unseen": _gains,
    }
    return [chart for run in section.runs for chart in each.get(section.protocol, _turns)(run)]


def draw_unseen(folders: Sequence[Path]) -> str:
    """Draw the charts of all runs of protocol ``unseen`` as an SVG file, judged questions left out.

    Raises:
        ReportFileError: as ``report_files.read``, or there is no such run.
    """
    runs = [run for run in read(folders).retrieval if run.protocol == "unseen"]
    if not runs:
        raise ReportFileError("No report is of --protocol unseen.")
    return draw_picture(
        [chart for run in runs for chart in _gains(run, (unseen_table.OTHERS, unseen_table.SHARING))]
    )


def _side_by_side(runs: Sequence[ReportExtract]) -> Bars:
    """Every arm on every data set."""
    arms = dict.fromkeys(line.arm for run in runs for line in run.lines)
    values = [{line.arm: line.values.get(METRIC) for line in run.lines} for run in runs]
    series = {arm: [of.get(arm) for of in values] for arm in arms}
    return Bars(HEADINGS[METRIC], [run.dataset for run in runs], series)


def _trees(runs: Sequence[ReportExtract]) -> list[Chart]:
    return [Branches(f"{run.dataset}, {name}", nodes) for run in runs for name, nodes in run.trees.items()]


def _marks(runs: Sequence[ReportExtract]) -> Bars:
    series = {
        f"{run.dataset}, {line.arm}": [line.values.get(mark) for mark in MARKS]
        for run in runs
        for line in run.lines
    }
    return Bars("Answers in words", [HEADINGS[mark] for mark in MARKS], series)


def _keys(run: ReportExtract) -> list[Chart]:
    """Base keys and what each way of crediting made of them, where most ways were measured."""
    values = _values(run.lines)
    of: dict[str, dict[str, list[str]]] = {}
    for arm in dict.fromkeys(line.arm for line in run.lines if line.turn and line.group != adapt_table.PRICE):
        retriever, share, _ = arm.split(", ")
        of.setdefault(retriever, {}).setdefault(share, []).append(arm)
    drawn: list[Chart] = []
    for retriever, shares in of.items():
        share, arms = max(shares.items(), key=lambda item: len(item[1]))
        groups = [group for group in adapt_table.GROUPS if (arms[0], group, 1) in values]
        named = {adapt_table.BASE: (adapt_table.find_base_arm(arms[0]), 0)} | {
            arm.split(", ")[2]: (arm, 1) for arm in arms
        }
        series = {
            name: [values.get((arm, group, turn), {}).get(adapt_table.METRIC) for group in groups]
            for name, (arm, turn) in named.items()
        }
        drawn.append(
            Bars(f"{run.dataset}, {retriever}, {share}: {adapt_table.METRICS[adapt_table.METRIC]}", groups, series)
        )
    return drawn


def _rules(run: ReportExtract) -> list[Chart]:
    """Every rule on every group, by what the group is measured by first."""
    found, arms = _values(run.lines), list(dict.fromkeys(line.arm for line in run.lines))
    groups = list(dict.fromkeys(line.group for line in run.lines))
    metrics = [ratings_table.main_metric(group) for group in groups]

    def figures(arm: str, turn: int) -> list[float | None]:
        group_metrics = zip(groups, metrics, strict=True)
        return [found.get((arm, group, turn), {}).get(metric) for group, metric in group_metrics]

    series = {ratings_table.BEFORE_PHASE: figures(arms[0], 0)} | {arm: figures(arm, 1) for arm in arms}
    names = [f"{group}: {ratings_table.METRICS[metric]}" for group, metric in zip(groups, metrics, strict=True)]
    return [Bars(run.dataset, names, series)]


def _stretches(run: ReportExtract) -> list[Chart]:
    """The stream, stretch by stretch, with and without what it taught."""
    lines = [line for line in run.lines if METRIC in line.values]
    order = {group: at for at, group in enumerate(dict.fromkeys(line.group for line in lines), start=1)}
    series: dict[str, list[tuple[float, float]]] = {}
    for line in lines:
        series.setdefault(line.arm, []).append((order[line.group], line.values[METRIC]))
    return [Lines(f"{run.dataset}: {HEADINGS[METRIC]}", "stretch of the stream", HEADINGS[METRIC], series)]


def _gains(run: ReportExtract, groups: Sequence[str] = unseen_table.GROUPS) -> list[Lines]:
    """What each strategy gains by the number of verdicts, in a chart for each group; with the gate on alone."""
    drawn = []
    for group in groups:
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


def _turns(run: ReportExtract) -> list[Chart]:
    """Lines by turn, of groups, or of arms in a chart for each group; bars where there is one turn."""
    values = _values(run.lines)
    arms, groups = (
        list(dict.fromkeys(names)) for names in zip(*((o.arm, o.group) for o in run.lines), strict=True)
    )
    turns = sorted({line.turn for line in run.lines})
    title = f"{run.dataset}: {HEADINGS[METRIC]}"
    if len(turns) <= 2:
        first, last = turns[0], turns[-1]
        named = {"before": (arms[0], first)} | {f"turn {last}" if len(arms) == 1 else a: (a, last) for a in arms}
        series = {
            name: [values.get((arm, group, turn), {}).get(METRIC) for group in groups]
            for name, (arm, turn) in named.items()
        }
        return [Bars(title, groups, series)]

    def course(arm: str, group: str) -> list[tuple[float, float]]:
        return [(turn, values[arm, group, turn][METRIC]) for turn in turns if (arm, group, turn) in values]

    if len(arms) == 1:
        return [Lines(title, TURNS, HEADINGS[METRIC], {group: course(arms[0], group) for group in groups})]
    return [
        Lines(f"{title}, {group}", TURNS, HEADINGS[METRIC], {a: course(a, group) for a in arms if course(a, group)})
        for group in groups
    ]


def _values(lines: Sequence[TableLine]) -> Values:
    return {(line.arm, line.group, line.turn): line.values for line in lines}
