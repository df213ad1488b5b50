"""One scale for the cosines of all encoders.

Encoders that were trained with a low temperature, such as e5, give unrelated texts a cosine of .7 and related ones
.85. Ranking weights are fitted to an encoder for which unrelated texts have nearly 0. So cosines are moved and
stretched until unrelated texts have 0 and equal ones 1.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEAST_UNRELATED = 0.2
"""A smaller cosine of unrelated texts counts as 0, so that weights serve the encoder as it is."""


def compute_unrelated_cosine(questions: NDArray[np.float32], passages: NDArray[np.float32]) -> float:
    """Mean cosine of questions and passages that have nothing to do with each other, in [0, 1).

    Args:
        questions, passages: unit-length vectors, (n, d) and (m, d).
    """
    mean = float((questions.astype(np.float64) @ passages.astype(np.float64).T).mean())
    return min(mean, 0.95) if mean >= LEAST_UNRELATED else 0.0


def rescale_cosines(cosines: Floats, unrelated: float) -> Floats:
    """Cosines on the scale on which unrelated texts have 0.

    Args:
        cosines: in [-1, 1], of any shape.
        unrelated: as ``compute_unrelated_cosine`` gives it.
    """
    return (cosines - unrelated) / (1.0 - unrelated) if unrelated else cosines
