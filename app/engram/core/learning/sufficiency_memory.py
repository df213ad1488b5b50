"""Two lower bounds for the sufficiency of a later answer to the same question, updated with each support.

A verdict that supports a sentence was given on an answer that was sufficient with a known probability. A later
answer that this evidence leads is no worse: it has what the judged one had, and the evidence.

    answered    <- max(answered, a)                             a: sufficiency of the judged answer
    sufficiency <- s + K c (1 - s),  s = max(sufficiency, a)    K: gain of the support's own update
    both        <- (1 - K) times themselves                     after a rejection

``answered`` holds for any answer that the sentence's passage leads. ``sufficiency`` holds where all evidence of the
question leads; c is 1 for a verdict that claims to name all evidence, and ``PARTIAL`` for another.
"""

import numpy as np
from numpy.typing import NDArray

from engram.core.learning.kalman import Floats

PARTIAL = 0.25
"""Weight of a verdict that names some evidence, beside one that claims to name all of it."""


def update_sufficiency(
    answered: Floats,
    sufficiency: Floats,
    *,
    targets: Floats,
    gains: Floats,
    judged: Floats,
    complete: NDArray[np.bool_],
) -> tuple[Floats, Floats]:
    """Both numbers after one verdict each, (n,); row by row, so that a replay comes to the same bits.

    Args:
        answered, sufficiency: before it, (n,), in [0, 1].
        targets: 1 supported, 0 rejected, (n,).
        gains: K of the supports' updates, (n,), in [0, 1].
        judged: sufficiency of the judged answers, (n,), in [0, 1]; NaN: unknown, and the verdict says nothing.
        complete: whether the verdicts claim to name all evidence, (n,).
    """
    answer = np.where(np.isnan(judged), 0.0, judged)
    highest = np.maximum(answered, answer)
    least = np.maximum(sufficiency, answer)
    share = gains * np.where(complete, 1.0, PARTIAL)
    risen = np.where(np.isnan(judged), sufficiency, least + share * (1.0 - least))
    supported = targets > 0.5
    return (
        np.where(supported, highest, (1.0 - gains) * answered),
        np.where(supported, risen, (1.0 - gains) * sufficiency),
    )
