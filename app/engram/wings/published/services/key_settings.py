"""Setting ``passage_keys`` of a collection: whether verdicts teach its keys."""

from collections.abc import Mapping
from typing import Any

from engram.context.errors import InvalidRequestError
from engram.storage.corpus.collections import Collection


def complete_passage_keys(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Check the setting and return it.

    Raises:
        InvalidRequestError: it is no such setting.
    """
    if value.keys() != {"learn"} or not isinstance(value["learn"], bool):
        raise InvalidRequestError("passage_keys: 'learn' must be true or false.")
    return value


def do_keys_learn(collection: Collection) -> bool:
    """Whether verdicts teach the passage keys of the collection."""
    return collection.passage_keys is None or bool(collection.passage_keys["learn"])
