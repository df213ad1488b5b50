"""Whose budget a call of the language model is on: set for a request, heeded by every call that it brings about."""

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
        """So many were read and written."""


_meter: ContextVar[TokenMeter | None] = ContextVar("llm-meter", default=None)


def begin(meter: TokenMeter | None) -> None:
    """What is done in this context from now on, threads it is handed to included, is on this budget."""
    _meter.set(meter)


@contextmanager
def on(meter: TokenMeter | None) -> Iterator[None]:
    """What the block does is on this budget, as ``begin`` says; for work that is done for another."""
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
