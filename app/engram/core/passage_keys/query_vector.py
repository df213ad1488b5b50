"""Vector of a question that expansions widen, as keys are compared with it (ERM, Eq. 3)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]


def expand_query(query: Floats, units: Floats) -> NDArray[np.float32]:
    """The expanded query q' = {q} ∪ c(q) as one vector: question and expansions weigh the same.

    Args:
        query: unit length, (d,).
        units: the expansion units' embeddings, unit length, (m, d), m >= 1.

    Returns:
        Unit length, (d,).
    """
    expanded = query + np.mean(units, axis=0)
    return np.asarray(expanded / np.sqrt((expanded * expanded).sum(axis=-1)), dtype=np.float32)
