"""Paths that hold ids beside paths of their own: a passage's, in which slashes may stand, and a verdict's."""

from typing import Annotated

from fastapi import Path
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.routing import Match
from starlette.types import Scope

from engram.api.body_reading import Route
from engram.api.schemas import check_storable
from engram.context.errors import InvalidRequestError

KEY = "/key"
NO_IDS = frozenset({"revoke", "retry"})


class _TextConvertor(StringConvertor):
    """Any text, ``{id:text}``: Starlette's ``path`` ends before a line break and would name another id."""

    regex = r"[\s\S]*"


register_url_convertor("text", _TextConvertor())


class PassageRoute(Route):
    """A route on a passage. A path that ends in ``/key`` asks for the passage's key, and for nothing else.

    The id of a passage that itself ends in ``/key`` is told apart by its slash, which is sent as ``%2F``.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match the route that the undecoded path asks for: the passage's or its key's."""
        match, child = super().matches(scope)
        if match is Match.NONE:
            return match, child
        sent: bytes = scope.get("raw_path") or scope["path"].encode()
        if self.path.endswith(KEY):
            fits = sent.endswith(KEY.encode())
        else:
            named: str = child["path_params"].get("passage_id", "")
            fits = not (named.endswith(KEY) and sent.endswith(KEY.encode()))
        return (match, child) if fits else (Match.NONE, {})


class FeedbackRoute(Route):
    """A route on a verdict. ``/feedback/revoke`` and ``/feedback/retry`` are routes of their own and name none."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match unless the id is the name of another route (``NO_IDS``)."""
        match, child = super().matches(scope)
        if match is not Match.NONE and child["path_params"].get("feedback_id") in NO_IDS:
            return Match.NONE, {}
        return match, child


ExternalIdPath = Annotated[
    str,
    Path(
        min_length=1,
        max_length=512,
        description="Your id of the passage. If it ends in `/key`, send that slash as `%2F`.",
    ),
]


def path_text(text: str) -> str:
    """The id of a passage as a path holds it.

    Raises:
        InvalidRequestError: Postgres cannot hold it.
    """
    try:
        return check_storable(text)
    except ValueError as error:
        raise InvalidRequestError(f"The passage id {error}.") from error
