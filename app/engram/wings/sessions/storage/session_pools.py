"""Evidence pools beside the session's question."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engram.storage.corpus.collections import Collection
from engram.storage.database import Reader
from engram.storage.half_vectors import halve
from engram.storage.row_lookups import WANTED_IDS, join_by_index


def relevance(
    reader: Reader, collection: Collection, sentences: Sequence[int], vector: NDArray[np.float32]
) -> float | None:
    """The cosine of the sentence that is nearest to the vector, (d,), of unit length, in [-1, 1].

    None where none of them is there, or the collection has left the space that the vector is of.
    """
    similarity = reader.scalar(
        f"""
        SELECT -min(s.embedding <#> {halve("%(vector)s")})
        FROM {WANTED_IDS} {join_by_index("sentence s", "s.id = wanted.id")}
        WHERE (SELECT space FROM collection WHERE id = %(collection)s) = %(space)s
        """,
        {"collection": collection.id, "ids": list(sentences), "vector": vector, "space": collection.space},
    )
    return None if similarity is None else float(similarity)
