"""Table of ``needs``: a line for each way to judge, a column for each number of verdicts on a need."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from engram_evaluation.change_table import GroupChange
from engram_evaluation.report_table import Grid, SummaryLine, cell

COMPLETE = "complete verdicts"
ONE_PASSAGE = "one shown passage"
WRONG_PASSAGE = "one shown passage, 10% wrong"
ARMS = (COMPLETE, ONE_PASSAGE, WRONG_PASSAGE)
_LineT = TypeVar("_LineT", SummaryLine, GroupChange)
CHANGE_METRICS = ("first", "recall@5")
LEGEND = """\
Other people's wordings of needs that were judged. After each number of verdicts on a need: share of wordings that
the right passage answers first, and recall@5 in brackets. Gain: of first answers since before the first verdict,
with its 95% bootstrap interval over wordings. Votes: mean of the highest probability that past questions give to a
passage, and how often that passage is right."""


def build_grids(lines: Sequence[SummaryLine], changes: Sequence[GroupChange]) -> list[Grid]:
    """Build the tables: the ranking, what it gains, then the votes."""
    turns = sorted({line.turn for line in lines})
    header = [f"{turn} a need" for turn in turns]
    firsts = [change for change in changes if change.metric == "first"]
    return [
        Grid(["first (R@5)", *header], [_row(lines, arm, turns, _write_ranking) for arm in ARMS]),
        Grid(["gain", *header[1:]], [_row(firsts, arm, turns[1:], _write_gain) for arm in ARMS]),
        Grid(["votes say, are right", *header[1:]], [_row(lines, arm, turns[1:], _write_vote) for arm in ARMS]),
    ]


def _row(lines: Sequence[_LineT], arm: str, turns: Sequence[int], write: Callable[[_LineT], str]) -> list[str]:
    by_turn: dict[int, _LineT] = {line.turn: line for line in lines if line.arm == arm}
    return [arm, *(write(by_turn[turn]) if turn in by_turn else "" for turn in turns)]


def _write_ranking(line: SummaryLine) -> str:
    return f"{cell(line.values, 'first')} ({cell(line.values, 'recall@5')})"


def _write_gain(change: GroupChange) -> str:
    return f"{change.after - change.before:+.3f} ({change.low:+.3f} to {change.high:+.3f})"


def _write_vote(line: SummaryLine) -> str:
    return f"{cell(line.values, 'said')}, {cell(line.values, 'seen')}"
