"""The request that is being answered, as its log lines, its problem documents and its caller know it."""

import re
import uuid
from contextvars import ContextVar, Token

_SANE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
_id: ContextVar[str | None] = ContextVar("request_id", default=None)


def choose_id(header: str | None) -> str:
    """The caller's id of the request if it is a plain one, else a new one: logs are no place for anything else."""
    return header if header is not None and _SANE.fullmatch(header) else uuid.uuid4().hex


def begin(request_id: str) -> Token[str | None]:
    """Set the request id of this context from now on."""
    return _id.set(request_id)


def end(token: Token[str | None]) -> None:
    """The request is over."""
    _id.reset(token)


def get_current_id() -> str | None:
    """The id of the request that this context works for; None if there is none."""
    return _id.get()
