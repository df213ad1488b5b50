"""Similarity of a question with sentences."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from engram.storage.column_parameters import integers
from engram.storage.database import Reader
from engram.storage.half_vectors import halve
from engram.storage.row_lookups import WANTED_IDS, join_by_index


def compare(
    reader: Reader, collection_id: int, question: NDArray[np.float32], sentences: Collection[int]
) -> dict[int, float]:
    """Sentence -> its cosine with the question, in [-1, 1], of the given sentences that exist.

    Args:
        question: unit vector, (d,).
    """
    if not sentences:
        return {}
    rows = reader.rows(
        f"""
        SELECT s.id, -(s.embedding <#> {halve("%(question)s")}) AS similarity
        FROM {WANTED_IDS} {join_by_index("sentence s", "s.id = wanted.id")}
        """,
        {"collection": collection_id, "ids": integers(sentences), "question": question},
    )
    return {row.id: row.similarity for row in rows}
