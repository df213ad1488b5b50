"""Setting ``published`` of a collection: whether verdicts teach its sentence memories and passage keys."""

from collections.abc import Mapping
from typing import Any

from engram.context.errors import InvalidRequestError
from engram.storage.corpus.collections import Collection


def complete_setting(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Check the setting and return it.

    Raises:
        InvalidRequestError: it is no such setting.
    """
    if value.keys() != {"learn"} or not isinstance(value["learn"], bool):
        raise InvalidRequestError("published: 'learn' must be true or false.")
    return value


def is_taught(collection: Collection) -> bool:
    """Whether verdicts teach the sentence memories and passage keys of the collection."""
    return collection.published is None or bool(collection.published["learn"])
