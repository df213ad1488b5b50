"""How the titles and the sentences of passages are like a question."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.storage.column_parameters import Numbers, received
from engram.storage.database import Reader
from engram.storage.retrieval.query_focus import Focus

UNKNOWN = -1.0
"""Cosine of a title that has no vector: none is less."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """Cosines with the question, of n passages.

    Attributes:
        titles: of each one's title, ``UNKNOWN`` for none and for one that is not embedded yet, (n,).
        sentences: of each one's best sentence, 0 without sentences, (n,).
    """

    titles: NDArray[np.float64]
    sentences: NDArray[np.float64]


def find(reader: Reader, focus: Focus, passages: NDArray[np.int64], names: Sequence[str | None]) -> Likeness:
    """How passages are like the question, one by one.

    A title is a name in its passage's sentences, so its vector is that of an entity.

    Args:
        passages: (n,).
        names: of each the normalised title; None for none.
    """
    row = reader.row(
        """
        SELECT array_send(array_agg(coalesce(title.similarity, %(unknown)s::float8) ORDER BY wanted.place))
                   AS titles,
               array_send(array_agg(coalesce(own.similarity, 0) ORDER BY wanted.place)) AS sentences
        FROM unnest(%(ids)s::bigint[], %(names)s::text[]) WITH ORDINALITY AS wanted(id, name, place)
        CROSS JOIN LATERAL (
            SELECT max(-(s.embedding <#> %(q)s)) AS similarity FROM sentence s
            WHERE s.collection_id = %(collection)s AND s.passage_id = wanted.id
        ) AS own
        LEFT JOIN LATERAL (
            SELECT -(e.embedding <#> %(q)s) AS similarity FROM entity e
            WHERE e.collection_id = %(collection)s AND e.name = wanted.name OFFSET 0
        ) AS title ON true
        """,
        focus.parameters(ids=Numbers(passages), names=list(names), unknown=UNKNOWN),
    )
    return Likeness(received(row.titles, np.float64), received(row.sentences, np.float64))
