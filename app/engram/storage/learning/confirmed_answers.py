"""Answers that verdicts called sufficient, by the terms that these verdicts added."""

from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.ranking_weights import PriorIdentity
from engram.storage.column_parameters import decode_column
from engram.storage.database import Reader


def list_confirmed_answers(
    reader: Reader, collection_id: int, prior: PriorIdentity, size: int, limit: int
) -> NDArray[np.float64]:
    """Features of the latest ``limit`` answers that a counted verdict called sufficient, (n, size).

    A term's precision is c x xᵀ / R with the first feature 1, so its first row is a multiple of the features x. The
    last number of its information is above 0 if the answer was enough (``sufficiency.build_counted_observation``).
    """
    rows = reader.rows(
        """
        SELECT array_send(audit.precision[1:%(size)s]) AS multiple
        FROM weight_audit audit
        WHERE audit.collection_id = %(collection)s AND audit.model = %(model)s AND audit.prior = %(prior)s
          AND audit.counted AND audit.information[%(size)s + 1] > 0
        ORDER BY audit.event_id DESC LIMIT %(limit)s
        """,
        {"collection": collection_id, "size": size, "limit": limit, **asdict(prior)},
    )
    multiples = np.array([decode_column(row.multiple, np.float64) for row in rows], dtype=np.float64)
    return np.asarray(multiples.reshape(-1, size) / multiples.reshape(-1, size)[:, :1])
