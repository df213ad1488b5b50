"""How the work that a text makes grows with it."""

import math
import time
from collections.abc import Callable

TIMES_LONGER = 4
MOST_GROWTH = 8.0
"""Between the 4 of work that grows with the text and the 16 of work that grows with its square."""
ROUNDS = 6


def growth(work: Callable[[str], object], piece: str, size: int) -> float:
    """How many times the processor time of ``size`` characters of a repeated piece four times as many take.

    The best of a few rounds, because what else the machine does adds to some; the first below
    ``MOST_GROWTH`` ends them.
    """
    texts = [(piece * (length // len(piece) + 1))[:length] for length in (size, TIMES_LONGER * size)]
    best = [math.inf, math.inf]
    for _ in range(ROUNDS):
        for which, text in enumerate(texts):
            began = time.process_time()
            work(text)
            best[which] = min(best[which], time.process_time() - began)
        if best[1] < MOST_GROWTH * best[0]:
            break
    return best[1] / best[0]
