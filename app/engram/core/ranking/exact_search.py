"""Exact search of what is nearest."""

import numpy as np
from numpy.typing import NDArray


def find_nearest(
    keys: NDArray[np.float32], vector: NDArray[np.float32], count: int, among: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """The ``count`` rows of ``keys``, (n, d), whose inner product with ``vector``, (d,), is greatest, best first.

    By one processor, whatever NumPy was built with: several would wait for each other longer than one takes.

    Args:
        among: which rows may be found, (n,); None: all.
    """
    products = np.einsum("nd,d->n", keys, vector)
    count = min(count, len(products) if among is None else int(among.sum()))
    if among is not None:
        products[~among] = -np.inf
    best = np.argpartition(products, len(products) - count)[len(products) - count :] if count else np.zeros(0, int)
    return best[np.argsort(-products[best], kind="stable")].astype(np.int64)
