"""Size limits of passages and of batches; larger input is refused, split, or left for the next batch."""

from collections.abc import Iterable
from itertools import accumulate

TEXT_CHARACTERS = 500_000
"""A passage's text, and its sentences together: a long novel."""
SENTENCES = 20_000
"""Sentences of a passage, each with a vector and a row of its own: a text in sentences of 25 characters."""
SENTENCE_CHARACTERS = 20_000
"""A sentence that is sent."""
BATCH_CHARACTERS = 500_000
"""Passages that are worked on at once: one of the longest, or hundreds of ordinary ones. A trained pipeline takes
1.6 GB to read that much."""
BATCH_TOKENS = 16_384
"""Tokens that one batch of a job embeds, or those of one passage: the default encoder reads so many in about three
seconds of two cores. Others whose jobs wait have their turn then."""
BATCH_ROWS = 20_000
"""Sentences and names that are written at once, or those of one passage."""


def count_fitting(sizes: Iterable[int], most: int) -> int:
    """Count the leading sizes that add up to at most ``most``; the first one always fits."""
    return sum(index == 0 or total <= most for index, total in enumerate(accumulate(sizes)))
