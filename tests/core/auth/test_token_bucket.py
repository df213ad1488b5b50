"""The token bucket's arithmetic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.auth.token_bucket import Bucket, take, token_grant

seconds = st.floats(0, 1e6)


def test_a_new_bucket_is_full_and_runs_out() -> None:
    held, allowed = take(None, 0.0, 1.0, 2)
    assert (held, allowed) == (Bucket(1.0, 0.0), True)
    held, allowed = take(held, 0.0, 1.0, 2)
    assert (held.tokens, allowed) == (0.0, True)
    held, allowed = take(held, 0.0, 1.0, 2)
    assert (held.tokens, allowed) == (0.0, False)


def test_tokens_flow_in_with_time() -> None:
    held, allowed = take(Bucket(0.5, 10.0), 10.75, 2.0, 5)
    assert (held.tokens, allowed) == (0.5 + 0.75 * 2 - 1, True)


@given(st.lists(seconds, min_size=1, max_size=60), st.floats(0.1, 100), st.integers(1, 20), st.integers(1, 10))
def test_no_more_is_let_through_than_flowed_in(moments: list[float], rate: float, burst: int, count: int) -> None:
    held, through = None, 0
    for now in sorted(moments):
        held, allowed = take(held, now, rate, burst, count)
        assert 0 <= held.tokens <= burst
        through += count * allowed
    assert through <= burst + (max(moments) - min(moments)) * rate + 1e-6


def test_backward_clock_adds_no_tokens() -> None:
    assert take(Bucket(0.0, 10.0), 5.0, 1.0, 2) == (Bucket(0.0, 5.0), False)


def test_token_grant_gives_remaining_tokens_and_waiting_times() -> None:
    told = token_grant(0.25, 0.5, 3, allowed=False)
    assert (told.remaining, told.retry_seconds, told.full_seconds) == (0, 0.75 / 0.5, 2.75 / 0.5)
    assert token_grant(0.25, 0.5, 3, 2, allowed=False).retry_seconds == 1.75 / 0.5


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_bucket_that_never_fills_is_refused(rate: float, burst: float) -> None:
    with pytest.raises(ValueError, match="bucket"):
        take(None, 0.0, rate, burst)
