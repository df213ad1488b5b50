"""Protocols whose reports have tables of their own instead of a line for each group and turn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engram_evaluation import levels_table, needs_table, ratings_table, thumbs_table, unseen_table
from engram_evaluation.change_table import GroupChange
from engram_evaluation.report_table import Grid, SummaryLine


@dataclass(frozen=True, slots=True)
class OwnTables:
    """Tables of one protocol.

    Attributes:
        build: makes them of a report's lines and changes, the main table first.
    """

    legend: str
    build: Callable[[Sequence[SummaryLine], Sequence[GroupChange]], list[Grid]]


def _without_changes(
    build: Callable[[Sequence[SummaryLine]], list[Grid]],
) -> Callable[[Sequence[SummaryLine], Sequence[GroupChange]], list[Grid]]:
    """Make tables of lines alone."""
    return lambda lines, _: build(lines)


OWN_TABLES: Mapping[str, OwnTables] = {
    "human": OwnTables(ratings_table.LEGEND, _without_changes(ratings_table.build_grids)),
    "levels": OwnTables(levels_table.LEGEND, _without_changes(levels_table.build_grids)),
    "needs": OwnTables(needs_table.LEGEND, needs_table.build_grids),
    "thumbs": OwnTables(thumbs_table.LEGEND, _without_changes(thumbs_table.build_grids)),
    "unseen": OwnTables(unseen_table.LEGEND, unseen_table.build_grids),
}
"""Protocol -> its tables."""
