"""Exact search of what is nearest."""

import numpy as np
from numpy.typing import NDArray


def find_nearest(keys: NDArray[np.float32], vector: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """The ``count`` rows of ``keys``, (n, d), whose inner product with ``vector``, (d,), is greatest, best first.

    By one processor, whatever NumPy was built with: several would wait for each other longer than one takes.
    """
    products = np.einsum("nd,d->n", keys, vector)
    count = min(count, len(products))
    best = np.argpartition(products, len(products) - count)[len(products) - count :] if count else np.zeros(0, int)
    return best[np.argsort(-products[best], kind="stable")].astype(np.int64)
