"""Protocols whose reports have tables of their own instead of a line for each group and turn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engram_evaluation import levels_table, needs_table, ratings_table, thumbs_table
from engram_evaluation.report_table import Grid, TableLine


@dataclass(frozen=True, slots=True)
class OwnTables:
    """Tables of one protocol.

    Attributes:
        build: makes them of a report's lines, the main table first.
    """

    legend: str
    build: Callable[[Sequence[TableLine]], list[Grid]]


OWN_TABLES: Mapping[str, OwnTables] = {
    "human": OwnTables(ratings_table.LEGEND, ratings_table.build_grids),
    "levels": OwnTables(levels_table.LEGEND, levels_table.build_grids),
    "needs": OwnTables(needs_table.LEGEND, needs_table.build_grids),
    "thumbs": OwnTables(thumbs_table.LEGEND, thumbs_table.build_grids),
}
"""Protocol -> its tables."""
