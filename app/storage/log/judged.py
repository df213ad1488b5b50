"""What verdicts on an answered query go by: the log's own copy, which stays when the answer goes."""

import numpy as np
from numpy.typing import NDArray

from app.storage.lookups import each

JUDGED = each("judged_query judged", "judged.id = event.query_id")
"""Has ``judged`` be what the ``event`` judges."""


def features_of(ranked: list[int] | None, features: bytes | None) -> NDArray[np.float32] | None:
    """The features, (n, k), of the ranked passages (n,), as they are stored; None where there are none."""
    return np.frombuffer(features, dtype="<f4").reshape(len(ranked), -1) if ranked and features else None


def enough_of(features: bytes | None) -> NDArray[np.float32] | None:
    """The features of the answer, (k,), see ``sufficiency``; None where it teaches nothing of what is enough."""
    return np.frombuffer(features, dtype="<f4") if features else None
