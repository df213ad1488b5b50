"""Token budget of a request, charged by every language model call that it causes."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class TokenMeter(Protocol):
    """Someone's budget of tokens."""

    def check(self) -> None:
        """Go on only if there is something left.

        Raises:
            LlmError: there is not.
        """

    def add(self, tokens: int) -> None:
        """Count tokens that were read and written."""


_meter: ContextVar[TokenMeter | None] = ContextVar("llm-meter", default=None)


def begin(meter: TokenMeter | None) -> None:
    """Charge this context's calls from now on, those of its threads included, to this budget."""
    _meter.set(meter)


@contextmanager
def on(meter: TokenMeter | None) -> Iterator[None]:
    """Charge the block's calls to this budget, for work done on behalf of another."""
    before = _meter.set(meter)
    try:
        yield
    finally:
        _meter.reset(before)


def check() -> None:
    """See that the budget of this context, if there is one, has something left.

    Raises:
        LlmError: it has not.
    """
    meter = _meter.get()
    if meter is not None:
        meter.check()


def add(tokens: int) -> None:
    """Put what a call came to on the budget of this context, if there is one."""
    meter = _meter.get()
    if meter is not None:
        meter.add(tokens)
