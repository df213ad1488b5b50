"""Similarity of a question with the titles and with the best sentences of passages."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.storage.column_parameters import Numbers, decode_column
from engram.storage.database import Reader
from engram.storage.half_vectors import HALVED_QUESTION
from engram.storage.retrieval.query_focus import Focus

NO_COSINE = -1.0
"""Cosine of a title without a vector: no cosine is lower."""


@dataclass(frozen=True, slots=True)
class PassageLikeness:
    """Cosines of n passages with a question, in [-1, 1].

    Attributes:
        titles: cosine of each title, (n,); ``NO_COSINE`` where there is none or it is not embedded yet.
        sentences: cosine of each passage's best sentence, (n,); 0 for a passage without sentences.
    """

    titles: NDArray[np.float64]
    sentences: NDArray[np.float64]


def measure(
    reader: Reader, focus: Focus, passages: NDArray[np.int64], names: Sequence[str | None]
) -> PassageLikeness:
    """Compare a question with the titles and sentences of passages.

    A title is a name in its passage's sentences, so the vector of the entity with that name stands for it.

    Args:
        passages: ids, (n,).
        names: normalised title of each passage; None for an untitled one.
    """
    row = reader.row(
        f"""
        SELECT array_send(array_agg(coalesce(title.similarity, %(unknown)s::float8) ORDER BY candidate.place))
                   AS titles,
               array_send(array_agg(coalesce(own.similarity, 0) ORDER BY candidate.place)) AS sentences
        FROM unnest(%(ids)s::bigint[], %(names)s::text[]) WITH ORDINALITY AS candidate(id, name, place)
        CROSS JOIN LATERAL (
            SELECT max(-(s.embedding <#> {HALVED_QUESTION})) AS similarity FROM sentence s
            WHERE s.collection_id = %(collection)s AND s.passage_id = candidate.id
        ) AS own
        LEFT JOIN LATERAL (
            SELECT -(e.embedding <#> {HALVED_QUESTION}) AS similarity FROM entity e
            WHERE e.collection_id = %(collection)s AND e.name = candidate.name OFFSET 0
        ) AS title ON true
        """,
        focus.parameters(ids=Numbers(passages), names=list(names), unknown=NO_COSINE),
    )
    return PassageLikeness(decode_column(row.titles, np.float64), decode_column(row.sentences, np.float64))
