"""Which entity a mention is (GRAM, Eq. 1): by name, by alias, else by similarity within its type and neighbourhood.

The published rule joins a mention m to a node v if sim(m, v) > delta, and leaves sim, delta and the aggregate of a
node's mentions open. Decided here and measured (``docs/fact-extraction.md``): sim is the cosine of the names' vectors,
and names join by it only if they agree in what tells namesakes apart, numbers and initials; a node's vector is the
mean of its mentions', brought back to length 1.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
Way = Literal["name", "alias", "similarity", "new"]

DELTA = 0.7
"""Similarity above which a mention joins a node."""

_WORD = re.compile(r"\w+")
_QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")
_NUMERAL = re.compile(r"[0-9]+(?:st|nd|rd|th)?|[ivxl]+")
_ORDINALS = {
    word: str(number)
    for number, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth".split(), start=1
    )
}
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50}


@dataclass(frozen=True, slots=True)
class Node:
    """An entity that a mention may be.

    Attributes:
        keys: its name and its aliases, normalised; the name first.
        kind: what it is, such as "person"; None if nobody knows.
        vector: (d,), of length 1.
        neighbours: ids of the entities that it has facts with.
    """

    id: int
    keys: tuple[str, ...]
    kind: str | None
    vector: Vector
    neighbours: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Joined:
    """What a mention was joined to.

    Attributes:
        node: its id; None where the mention is an entity of its own.
        way: how.
        similarity: cosine of mention and node, in [-1, 1]; 1 for equal names, that of the nearest one for a new entity.
    """

    node: int | None
    way: Way
    similarity: float


def align(
    key: str,
    kind: str | None,
    vector: Vector,
    near: Collection[int],
    nodes: Sequence[Node],
    delta: float = DELTA,
) -> Joined:
    """The node that a mention is.

    A name wins over an alias, and either over any similarity. By similarity a mention joins the nearest node of its
    type that is itself, or has a neighbour, among ``near``: the entities of the same passage or session.
    Of equals the lower id wins.

    Args:
        key: the mention's name, normalised.
        kind: its type; None goes with any.
        vector: (d,), of length 1.
        near: its neighbourhood, ids of nodes.
        nodes: candidates.
        delta: similarity that has to be exceeded, in [-1, 1].

    Raises:
        ValueError: ``delta`` is no cosine.
    """
    if not -1.0 <= delta <= 1.0:
        raise ValueError(f"delta must lie between -1 and 1, not {delta}")
    ranked = sorted(nodes, key=lambda node: node.id)
    for way, position in (("name", slice(0, 1)), ("alias", slice(1, None))):
        for node in ranked:
            if key in node.keys[position]:
                return Joined(node.id, "name" if way == "name" else "alias", 1.0)
    within = set(near)
    eligible = [
        node
        for node in ranked
        if (kind is None or node.kind is None or kind == node.kind)
        and (node.id in within or not within.isdisjoint(node.neighbours))
        and any(agree(key, other) for other in node.keys)
    ]
    if not eligible:
        return Joined(None, "new", 0.0)
    similarities = np.stack([node.vector for node in eligible]) @ vector
    best = int(np.argmax(similarities))
    similarity = float(similarities[best])
    if similarity > delta:
        return Joined(eligible[best].id, "similarity", similarity)
    return Joined(None, "new", similarity)


def aggregate(vectors: Sequence[Vector]) -> Vector:
    """A node's vector from its mentions' (Aggr of Eq. 1): their mean, of length 1; the first if they cancel out.

    Raises:
        ValueError: there are none.
    """
    if not len(vectors):
        raise ValueError("a node has at least one mention")
    mean = np.mean(np.stack(vectors), axis=0)
    length = float(np.linalg.norm(mean))
    return np.asarray(vectors[0] if length == 0.0 else mean / length, dtype=np.float32)


def agree(one: str, other: str) -> bool:
    """Whether two normalised names can be the same thing's: same numbers, a word in common, initials that fit.

    "george ii" is not "george iii", "part 1" not "part 2", and two people with one family name have first names that
    begin alike or are missing.
    """
    first, second = _words(one), _words(other)
    if _numerals(first) != _numerals(second):
        return False
    shared = set(first) & set(second)
    if not shared or not any(len(word) > 1 for word in shared):
        return False
    return not (_odd(first, shared) and _odd(second, shared)) or _fits(first, second, shared)


def _odd(words: Sequence[str], shared: set[str]) -> bool:
    return any(word not in shared for word in words)


def _fits(first: Sequence[str], second: Sequence[str], shared: set[str]) -> bool:
    """Whether some word of one that the other lacks begins like one of the other's: "ed", "edward"."""
    left = [word for word in first if word not in shared]
    right = [word for word in second if word not in shared]
    return any(one[0] == other[0] for one in left for other in right)


def _words(name: str) -> list[str]:
    return _WORD.findall(_QUALIFIER.sub("", name))


def _numerals(words: Sequence[str]) -> set[str]:
    """The numbers of a name: in figures, as ordinals, in Roman letters after its first word."""
    found = set()
    for place, word in enumerate(words):
        if word in _ORDINALS:
            found.add(_ORDINALS[word])
        elif word[0].isdigit() and _NUMERAL.fullmatch(word):
            found.add(word.rstrip("stndrh"))
        elif place and _NUMERAL.fullmatch(word) and _roman(word) is not None:
            found.add(str(_roman(word)))
    return found


def _roman(word: str) -> int | None:
    """Its value; None for a lone "l"."""
    values = [_ROMAN[letter] for letter in word]
    if word == "l":
        return None
    return sum(
        -value if place + 1 < len(values) and value < values[place + 1] else value
        for place, value in enumerate(values)
    )
