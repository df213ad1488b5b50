"""Copying rows of a collection into another one, which holds what the first was at a past moment.

Rows keep their ids with all their bytes: the collection leads every primary key, so an id need be unique in its own
collection only, and ids drawn later come from the same sequences, from beyond these. What names a sentence or a
passage by its id (verdicts, answers, candidates, audit) is therefore copied as it stands.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engram.storage.row_lookups import join_by_index
from engram.storage.tables import metadata


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy that is being made: ``source`` as of ``until``, into the collection ``target``."""

    source: int
    target: int
    until: datetime

    def parameters(self, **more: Any) -> dict[str, Any]:
        """For a statement."""
        return {"source": self.source, "target": self.target, "until": self.until, **more}


def build_source_join(table: str, condition: str, *, outer: bool = False) -> str:
    """Return JOIN text as ``join_by_index`` does, for rows of the source collection."""
    return join_by_index(table, condition, outer=outer, collection="%(source)s")


def build_copy_statement(table: str, source: str, **instead: str) -> str:
    """The statement that copies the rows ``held`` of ``table`` that ``source``, from FROM on, gives.

    Args:
        instead: column -> the expression that comes in its place.
    """
    columns = [column.name for column in metadata.tables[table].columns if column.name != "collection_id"]
    values = ", ".join(instead.get(column, f"held.{column}") for column in columns)
    return f"INSERT INTO {table} (collection_id, {', '.join(columns)}) SELECT %(target)s, {values} {source}"
