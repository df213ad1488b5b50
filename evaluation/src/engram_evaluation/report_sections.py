"""Sections of a page of several reports: per protocol and command, tables with a column for each data set."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engram_evaluation import adapt_table, robustness
from engram_evaluation.change_table import GroupChange, write_change
from engram_evaluation.learning_variations import FLIP_RATES
from engram_evaluation.own_tables import OWN_TABLES
from engram_evaluation.report_changes import list_metric_names
from engram_evaluation.report_files import ReportExtract
from engram_evaluation.report_table import FITTED_NOTE, MARKS, TOKENS, Grid, SummaryLine, cell, label, legend

INTRODUCTION = """\
What `engram evaluate` measured, gathered by `engram report`. A data set is named by its folder. A turn is one round
of verdicts; of many turns the first and the last are shown, and where arms are compared only the last. R@k: share
of the relevant passages among the first k. all@5: share of the questions of which all are so among the first five,
or five of more. ms: median wall-clock time of a query. n: questions. Figures are means
over seeds where a command names several."""


@dataclass(frozen=True, slots=True)
class Section:
    """The runs of one command on several data sets.

    Attributes:
        commands: what made them, that of the weights they started from first.
        remark: what is to be said of the figures, or None.
        legend: what the words in the tables mean, or None.
    """

    runs: tuple[ReportExtract, ...]
    commands: tuple[str, ...]
    remark: str | None
    legend: str | None
    grids: tuple[Grid, ...]

    @property
    def protocol(self) -> str:
        """Protocol of all its runs."""
        return self.runs[0].protocol


def corpora(reports: Sequence[ReportExtract]) -> Grid:
    """Make the table of data set sizes."""
    sizes = sorted({(one.dataset, *one.corpus) for one in reports})
    rows = [[name, f"{passages:,}", f"{questions:,}"] for name, passages, questions in sizes]
    return Grid(["data set", "passages", "questions"], rows)


def makers(reports: Sequence[ReportExtract]) -> str:
    """Versions, code and encoders."""
    return "Made by: " + "; ".join(sorted({one.made_by for one in reports})) + "."


def sections(reports: Sequence[ReportExtract]) -> list[Section]:
    """One for each command, in the order of the reports."""
    together: dict[tuple[str, str], list[ReportExtract]] = {}
    for one in reports:
        together.setdefault((one.protocol, one.shared_command), []).append(one)
    return [_section(runs) for runs in together.values()]


def _section(runs: Sequence[ReportExtract]) -> Section:
    commands = dict.fromkeys(command for one in runs for command in (one.fit, one.command) if command)
    fitted = [one.dataset for one in runs if one.fitted]
    remark = f"{FITTED_NOTE.capitalize()}: {', '.join(fitted)}." if fitted else None
    legends = {"adapt": adapt_table.LEGEND}
    legends |= {protocol: legend(protocol) for protocol in ("session", "clicks")}
    legends |= {protocol: tables.legend for protocol, tables in OWN_TABLES.items()}
    return Section(tuple(runs), tuple(commands), remark, legends.get(runs[0].protocol), tuple(_grids(runs)))


def _grids(runs: Sequence[ReportExtract]) -> list[Grid]:
    match runs[0].protocol:
        case "adapt":
            return [*map(_build_worth_grid, runs), _prices(runs)]
        case protocol if protocol in OWN_TABLES:
            own = [grid for run in runs for grid in _own(run)]
            return own + (_build_change_grids(runs) if protocol == "human" else [])
        case "clicks" | "session" as protocol:
            return [_figures(heading, runs, write) for heading, write in FIGURES[protocol].items()]
        case protocol:
            main = [_figures("R@5 (all@5) / R@10", runs, _recall), _figures("n, hops, ms", runs, _costs)]
            return [*main, *_build_change_grids(runs), *([_robustness(runs)] if protocol == "noise" else [])]


def _figures(heading: str, runs: Sequence[ReportExtract], write: Callable[[SummaryLine], str]) -> Grid:
    columns = [{_label(one, line): write(line) for line in _select_lines(one.lines)} for one in runs]
    return _side_by_side(heading, runs, columns)


def _build_worth_grid(run: ReportExtract) -> Grid:
    heading, *groups = adapt_table.headings(adapt_table.METRIC)
    return Grid([f"{run.dataset}: {heading}", *groups], adapt_table.rows(run.lines, adapt_table.METRIC))


def _own(run: ReportExtract) -> list[Grid]:
    return [
        Grid([f"{run.dataset}: {grid.headings[0]}", *grid.headings[1:]], grid.rows)
        for grid in OWN_TABLES[run.protocol].build(run.lines, run.changes)
    ]


def _prices(runs: Sequence[ReportExtract]) -> Grid:
    return _side_by_side(adapt_table.PRICE_TITLE, runs, [adapt_table.prices(run.lines) for run in runs])


def _robustness(runs: Sequence[ReportExtract]) -> Grid:
    columns = [
        {f"{one.group}, {one.rule}": " / ".join(one.cells("recall@5")) for one in robustness.rows(run.lines)}
        for run in runs
    ]
    shares = " / ".join(f"{share:.0%}" for share in FLIP_RATES)
    return _side_by_side(f"R@5 gained at {shares} flipped / kept", runs, columns)


def _build_change_grids(runs: Sequence[ReportExtract]) -> list[Grid]:
    """One table for each metric: before -> after of every group, a column for each data set."""
    names = list_metric_names(runs[0].protocol)
    metrics = dict.fromkeys(change.metric for run in runs for change in run.changes)
    return [
        _side_by_side(
            f"{names[metric]} before -> after (95% interval of the change)",
            runs,
            [
                {
                    _name_changed(run, change): write_change(change)
                    for change in run.changes
                    if change.metric == metric
                }
                for run in runs
            ],
        )
        for metric in metrics
    ]


def _name_changed(run: ReportExtract, change: GroupChange) -> str:
    several = len({one.arm for one in run.changes}) > 1
    return f"{change.group}, {change.arm}" if several else change.group


def _side_by_side(heading: str, runs: Sequence[ReportExtract], columns: Sequence[Mapping[str, str]]) -> Grid:
    """One table: a column (label -> text) for each run's data set, empty where it has nothing under a label."""
    labels = dict.fromkeys(name for column in columns for name in column)
    rows = [[name, *(column.get(name, "") for column in columns)] for name in labels]
    return Grid([heading, *(run.dataset for run in runs)], rows)


def _recall(line: SummaryLine) -> str:
    every = f" ({cell(line.values, 'all@5')})" if "all@5" in line.values else ""
    return f"{cell(line.values, 'recall@5')}{every} / {cell(line.values, 'recall@10')}"


def _costs(line: SummaryLine) -> str:
    hops = f"{cell(line.values, 'hops')} hops, " if "hops" in line.values else ""
    return f"{line.questions}: {hops}{cell(line.values, 'ms')} ms"


def _join_cells(line: SummaryLine, *names: str) -> str:
    return " / ".join(cell(line.values, name) for name in names if name in line.values)


CLICKS: Mapping[str, Callable[[SummaryLine], str]] = {
    "R@5 / nDCG / MRR": lambda line: _join_cells(line, "recall@5", "ndcg@10", "mrr"),
    "wrong first / mended / stuck": lambda line: _join_cells(line, "wrong", "mended", "stuck"),
    "spoiled": lambda line: _join_cells(line, "spoiled"),
}
"""Tables of ``clicks``: heading -> what a line says there."""

SESSIONS: Mapping[str, Callable[[SummaryLine], str]] = {
    "R@5 (all@5)": lambda line: f"{cell(line.values, 'recall@5')} ({cell(line.values, 'all@5')})",
    "all read / passages read": lambda line: _join_cells(line, "read_all", "read"),
    "gold in pool / of pool gold": lambda line: _join_cells(line, "pool_recall", "pool_precision"),
    "EM / F1 / contains": lambda line: _join_cells(line, *MARKS),
    "rounds / LLM calls / tokens in / out / ms": lambda line: _join_cells(
        line, "rounds", "llm_calls", *TOKENS, "ms"
    ),
}
"""Tables of ``session``: heading -> what a line says there."""

FIGURES = {"clicks": CLICKS, "session": SESSIONS}


def _select_lines(lines: Sequence[SummaryLine]) -> list[SummaryLine]:
    """Select lines to show: of many turns the state before, the first and the last."""
    turns = {0, max(line.turn for line in lines)}
    if len({line.arm for line in lines}) == 1:
        turns.add(1)
    return [line for line in lines if line.turn in turns]


def _label(extract: ReportExtract, line: SummaryLine) -> str:
    return label(line, extract.protocol, several=len({other.arm for other in extract.lines}) > 1)
