"""The JSON in a model's reply, which may stand after a thought, in a fence, or among sentences.

The scanner is the standard library's decoder, tried at each opening bracket. A library that repairs JSON is no
substitute: it completes a list that was cut off, and a judge would then reject every sentence that was cut.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

MAX_REPLY_CHARACTERS = 200_000
"""Longest reply that is searched, in characters."""

REASONING = "reasoning"
"""Field in which a prompt may let the model reason; nobody reads it."""

_OPENING_THOUGHT = re.compile(r"<(think|thinking|thought|reasoning)>", re.IGNORECASE)
_CLOSING_THOUGHT = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_BRACKET = re.compile(r"[{\[]")
_JSON_OBJECT_START = re.compile(r'\{\s*"')


class NoJsonError(ValueError):
    """The reply holds no JSON value, or several that differ; the message says which."""


def drop_thoughts(text: str) -> str:
    """Drop what a reasoning model thinks aloud before its reply.

    Chat templates of some servers write the opening tag themselves, so a closing tag alone ends a thought too.

    Raises:
        NoJsonError: the thought does not end, so there is no reply.
    """
    closings = list(_CLOSING_THOUGHT.finditer(text))
    reply = text[closings[-1].end() :] if closings else text
    opening = _OPENING_THOUGHT.match(reply.lstrip())
    if opening is not None:
        raise NoJsonError("the reply breaks off inside a thought")
    return reply


def find_object(text: str, fields: frozenset[str], list_field: str | None = None) -> Any:
    """Find the one JSON value of a reply that has some of ``fields``.

    An object inside another object of a single key counts, such as ``{"result": {...}}``. Without any object, a
    single list counts as the value of ``list_field``.

    Args:
        text: the reply.
        fields: names of which the object has at least one.
        list_field: the field that a bare list stands for; None if a list cannot stand for the reply.

    Raises:
        NoJsonError: there is none, it is cut off, or there are several that differ.
    """
    values = _decode_values(drop_thoughts(text)[:MAX_REPLY_CHARACTERS])
    objects = [_unwrap_object(value, fields) for value in values if _holds_object(value)]
    matching = [value for value in objects if fields & value.keys()]
    if not matching and list_field is not None and len(values) == 1 and isinstance(values[0], list):
        return {list_field: values[0]}
    if not matching and objects:
        return objects[-1]  # its missing fields are then what is wrong with it
    if not matching:
        raise NoJsonError("there is no JSON object in the reply")
    if any(value != matching[0] for value in matching):
        raise NoJsonError("there are several JSON objects in the reply, and they differ")
    return matching[0]


def collect_texts(text: str) -> frozenset[str]:
    """Collect the texts of several words in a text's JSON, in lower case, without those of field "reasoning".

    Raises:
        NoJsonError: some JSON is malformed or cut off.
    """
    return frozenset(
        found.casefold() for value in _decode_values(text) for found in _texts(value) if " " in found.strip()
    )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            if key != REASONING:
                yield from _texts(one)


def _decode_values(text: str) -> list[Any]:
    """Decode the JSON values that stand side by side in a text."""
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    values: list[Any] = []
    at = 0
    while (bracket := _BRACKET.search(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, bracket.start())
        except RecursionError as error:
            raise NoJsonError("the JSON is nested too deeply") from error
        except ValueError as error:
            if _JSON_OBJECT_START.match(text, bracket.start()):
                # Brackets further on stand inside this object, and a part of it is not the reply.
                raise NoJsonError(f"the JSON is malformed or cut off ({error})") from error
            at = bracket.end()
        else:
            values.append(value)
    return values


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _holds_object(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict))


def _unwrap_object(value: Any, fields: frozenset[str]) -> dict[str, Any]:
    """Take an object out of a list of one, or out of an object of one key that is none of the fields."""
    inner: dict[str, Any] = value[0] if isinstance(value, list) else value
    if len(inner) == 1:
        ((key, only),) = inner.items()
        if key not in fields and isinstance(only, dict):
            return only
    return inner
