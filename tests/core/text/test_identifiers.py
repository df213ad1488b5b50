"""Identifiers that order by time."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.text.identifiers import compute_first_id, read_moment, uuid7

MOMENTS = st.integers(0, (1 << 48) - 1)
ENTROPY = st.binary(min_size=10, max_size=10)


@given(MOMENTS, ENTROPY)
def test_an_identifier_is_of_version_7(milliseconds: int, entropy: bytes) -> None:
    drawn = uuid7(milliseconds, entropy)

    assert drawn.version == 7
    assert drawn.variant == uuid.RFC_4122
    assert drawn.int >> 80 == milliseconds


@given(MOMENTS, MOMENTS, ENTROPY, ENTROPY)
def test_identifiers_order_by_time(one: int, other: int, of_one: bytes, of_other: bytes) -> None:
    if one < other:
        assert uuid7(one, of_one) < uuid7(other, of_other)


def test_uuid7_keeps_the_random_bits() -> None:
    assert uuid7(0, bytes([255] * 10)).int == (0x7 << 76) | (0xFFF << 64) | (0b10 << 62) | ((1 << 62) - 1)
    assert uuid7(0, bytes(9) + b"\x01").int == (0x7 << 76) | (0b10 << 62) | 1


def test_a_moment_lies_between_what_was_drawn_before_and_since() -> None:
    moment = datetime(2026, 5, 4, tzinfo=UTC)
    at = int(moment.timestamp() * 1000)

    assert uuid7(at - 1, bytes([255] * 10)) < compute_first_id(moment) < uuid7(at, bytes(10))
    assert read_moment(uuid7(at + 250, bytes(10))) == moment + timedelta(milliseconds=250)


@pytest.mark.parametrize(("milliseconds", "entropy"), [(-1, bytes(10)), (1 << 48, bytes(10)), (0, bytes(9))])
def test_uuid7_refuses_values_out_of_range(milliseconds: int, entropy: bytes) -> None:
    with pytest.raises(ValueError, match=r"fit|random bytes"):
        uuid7(milliseconds, entropy)
