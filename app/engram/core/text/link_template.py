"""Links to documents, by the template of a collection, such as ``https://wiki/{source}#{heading}``."""

import re
from collections.abc import Mapping
from string import Formatter
from urllib.parse import quote, urlsplit

PLACEHOLDERS = ("source", "heading", "page", "title", "id")
MOST_CHARACTERS = 2_000
_START = re.compile(r"https?://[^/{}?#\s]+", re.IGNORECASE)
"""Scheme and host, which no placeholder may change."""


def check_template(template: str) -> str:
    """The template, if each link that it makes leads to one host over HTTP.

    Raises:
        ValueError: it does not begin with http:// or https:// and a host, or it has white space, an unbalanced
            brace or an unknown placeholder.
    """
    if len(template) > MOST_CHARACTERS:
        raise ValueError(f"must not be longer than {MOST_CHARACTERS} characters")
    start = _START.match(template)
    if start is None:
        raise ValueError("must begin with http:// or https:// and the name of a host without placeholders")
    if template[start.end() : start.end() + 1] not in ("", "/", "?", "#"):
        raise ValueError("must have a / behind the name of the host")
    if re.search(r"\s", template):
        raise ValueError("must not contain white space: write %20")
    parts = list(Formatter().parse(template))
    for _, name, style, conversion in parts:
        if name is not None and (name not in PLACEHOLDERS or style or conversion):
            known = ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
            raise ValueError(f"has an unknown placeholder {{{name}}}: there are {known}")
    urlsplit(template)
    return template


def make_link(template: str, values: Mapping[str, str]) -> str | None:
    """Fill the template; None if a value is missing before the fragment. A fragment without its value is left out.

    Args:
        template: as ``check_template`` returns it.
        values: placeholder -> what it stands for; each is URL-encoded, and ``source`` keeps its slashes.
    """
    address, mark, fragment = template.partition("#")
    filled = _fill(address, values)
    if filled is None or not mark:
        return filled
    end = _fill(fragment, values)
    return filled if end is None else f"{filled}#{end}"


def _fill(template: str, values: Mapping[str, str]) -> str | None:
    pieces: list[str] = []
    for text, name, _, _ in Formatter().parse(template):
        pieces.append(text)
        if name is not None:
            if not values.get(name):
                return None
            pieces.append(quote(values[name], safe="/" if name == "source" else ""))
    return "".join(pieces)
