"""Revisions of sentences: when their texts changed, and how alike the texts before and after are."""

from collections.abc import Sequence

from engram.core.learning.states import SentenceRevisions
from engram.storage.column_parameters import integers
from engram.storage.database import Reader
from engram.storage.row_lookups import WANTED_IDS, join_by_index


def load(reader: Reader, collection_id: int, sentences: Sequence[int]) -> dict[int, SentenceRevisions]:
    """Load the revisions of those sentences that were revised."""
    rows = reader.rows(
        f"""
        SELECT s.id, s.revised_at, s.revision_likeness FROM {WANTED_IDS}
        {join_by_index("sentence s", "s.id = wanted.id AND s.revised_at IS NOT NULL")}
        """,
        {"collection": collection_id, "ids": integers(sentences)},
    )
    return {row.id: SentenceRevisions(row.revised_at, row.revision_likeness) for row in rows}
