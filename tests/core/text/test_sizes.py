"""How much goes into one batch."""

import pytest

from engram.core.text.sizes import count_fitting


@pytest.mark.parametrize(
    ("sizes", "most", "fit"),
    [
        ([], 10, 0),
        ([4, 6, 1], 10, 2),  # 4 + 6 = 10, and 1 more is 11
        ([4, 6, 0], 10, 3),
        ([11, 1], 10, 1),  # what no batch could hold comes alone
        ([1, 11, 1], 10, 1),
    ],
)
def test_a_batch_is_the_head_that_fits(sizes: list[int], most: int, fit: int) -> None:
    assert count_fitting(sizes, most) == fit
