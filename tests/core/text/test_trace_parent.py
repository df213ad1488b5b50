"""Trace ids of ``traceparent`` headers: the standard's forms, and everything that is to be ignored."""

import pytest

from engram.core.text.trace_parent import trace_id

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    "header",
    [
        f"00-{TRACE}-{SPAN}-01",
        f" 00-{TRACE}-{SPAN}-00 ",
        f"cc-{TRACE}-{SPAN}-01",
        f"cc-{TRACE}-{SPAN}-01-what-ever",
    ],
)
def test_the_trace_id_is_read(header: str) -> None:
    assert trace_id(header) == TRACE


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        TRACE,
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}x-{SPAN}-01",
    ],
)
def test_an_invalid_header_is_ignored(header: str | None) -> None:
    assert trace_id(header) is None
