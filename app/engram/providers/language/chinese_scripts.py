"""Traditional and simplified characters of Chinese, which are read as the same."""

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from itertools import product
from math import prod

CHINESE = frozenset({"zh", "yue"})
"""Codes of its languages."""


def simplify(text: str) -> str:
    """Return a text with the simplified character in place of each traditional one."""
    return text.translate(_load_simplified())


def list_writings(text: str, most: int) -> list[str]:
    """List the ways to write a text in traditional and simplified characters, or its beginning if they are more."""
    writings = [simplify(character) + _load_traditional().get(simplify(character), "") for character in text]
    length = max(end for end in range(len(text) + 1) if prod(map(len, writings[:end])) <= most)
    return ["".join(characters) for characters in product(*writings[:length])]


@lru_cache(maxsize=1)
def _load_simplified() -> dict[int, str]:
    """Return the simplified character of each traditional one, as ``str.translate`` takes them."""
    table = files("engram.providers.language").joinpath("simplified_characters.txt").read_text("utf-8")
    pairs = (pair for line in table.splitlines() if not line.startswith("#") for pair in line.split())
    return {ord(pair[0]): pair[1] for pair in pairs}


@lru_cache(maxsize=1)
def _load_traditional() -> Mapping[str, str]:
    """Return the traditional characters of each simplified one."""
    traditional: defaultdict[str, str] = defaultdict(str)
    for code, simplified in _load_simplified().items():
        traditional[simplified] += chr(code)
    return dict(traditional)
