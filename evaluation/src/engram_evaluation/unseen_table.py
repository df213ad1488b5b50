"""Tables of ``unseen``: of each group, a line for each number of verdicts and a column for each strategy."""

from collections.abc import Sequence

from engram_evaluation.change_table import METRICS, GroupChange
from engram_evaluation.report_table import Grid, SummaryLine

OTHERS = "others"
SHARING = "sharing a passage"
JUDGED = "judged questions"
GROUPS = (OTHERS, SHARING, JUDGED)
GATE = "held-out verdicts"
CHANGE_METRICS = ("recall@5", "ndcg@10")
GATE_OFF = ", gate off"
LEGEND = """\
Before the first and after so many verdicts, with the 95% bootstrap interval of the change over questions. others
share no relevant passage with any judged question, sharing ones share one. gate: held-out verdicts decide whether
the tuned question encoder serves; gate off: it serves whatever they say. default and paper do not read it. used:
share of seeds in which the gate let the last one serve; held out: gain in nDCG@10 of held-out others, with its
standard error; first five kept: share of their first five passages that unjudged questions keep."""


def name_ungated_arm(strategy: str) -> str:
    """Name the arm of a strategy with the gate off."""
    return f"{strategy}{GATE_OFF}"


def find_base_arm(arm: str) -> str:
    """Find the arm that was asked before the first verdict."""
    return arm.removesuffix(GATE_OFF)


def build_grids(lines: Sequence[SummaryLine], changes: Sequence[GroupChange]) -> list[Grid]:
    """Build a table for each group and metric, the most telling first, then what held-out verdicts said."""
    grids = [
        _build_group(group, metric, selected)
        for metric in CHANGE_METRICS
        for group in GROUPS
        if (selected := [one for one in changes if (one.group, one.metric) == (group, metric)])
    ]
    return [*grids, _build_decisions(lines)]


def _build_group(group: str, metric: str, changes: Sequence[GroupChange]) -> Grid:
    arms = list(dict.fromkeys(change.arm for change in changes))
    rows = []
    for turn in sorted({change.turn for change in changes}):
        by_arm = {change.arm: change for change in changes if change.turn == turn}
        counted = str(next(iter(by_arm.values())).questions)
        rows.append([str(turn), counted, *(_write(by_arm[arm]) if arm in by_arm else "" for arm in arms)])
    return Grid([f"{group}: {METRICS[metric]} after verdicts", "n", *arms], rows)


def _write(change: GroupChange) -> str:
    return f"{change.before:.3f} -> {change.after:.3f} ({change.low:+.3f} to {change.high:+.3f})"


def _build_decisions(lines: Sequence[SummaryLine]) -> Grid:
    rows = []
    for line in sorted((line for line in lines if line.group == GATE), key=lambda line: line.turn):
        gain, error = (line.values.get(name) for name in ("gain", "error"))
        held_out = (
            "too few needs"
            if gain is None
            else f"{gain:+.3f} ± " + ("unknown" if error is None else f"{error:.3f}")
        )
        overlap = line.values.get("overlap")
        rows.append(
            [str(line.turn), f"{line.values['used']:.2f}", held_out, "" if overlap is None else f"{overlap:.2f}"]
        )
    return Grid(["after verdicts", "used", "held out", "first five kept"], rows)
