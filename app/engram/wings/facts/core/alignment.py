"""Alignment of a mention with an entity (GRAM, Eq. 1): by name, alias, or similarity in its neighbourhood.

The published rule joins a mention m to a node v if sim(m, v) > delta, and leaves sim and delta open. A cosine means
something else with each encoder, so there is no delta here: names join if they agree in what tells namesakes apart
(``agree``), and of several nodes that agree the mention joins the most similar one.
"""

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
Way = Literal["name", "alias", "similarity", "new"]

_WORD = re.compile(r"\w+")
_QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")
_NUMERAL = re.compile(r"[0-9]+(?:st|nd|rd|th)?|[ivxl]+")
# What stands before a name or after it and is no part of it.
_TITLES = frozenset(
    """sir dame lord lady count countess duke duchess baron prince princess king queen emperor empress archduke
    archduchess sheikh dr prof professor rev reverend saint st general colonel captain major lieutenant admiral
    president mr mrs ms the""".split()
)
_ENDINGS = frozenset("jr sr esq ltd inc co corp corporation company llc plc pty gmbh".split())
_GENERATIONS = frozenset(("jr", "sr"))
_ORDINALS = {
    word: str(number)
    for number, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth".split(), start=1
    )
}
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50}


@dataclass(frozen=True, slots=True)
class CandidateEntity:
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
class AlignedMention:
    """Entity that a mention was joined to.

    Attributes:
        node: its id; None where the mention is an entity of its own.
        way: how.
        similarity: cosine of mention and node, in [-1, 1]; 1 for equal names, 0 for a new entity.
    """

    node: int | None
    way: Way
    similarity: float


def align(
    key: str, kind: str | None, vector: Vector, near: Collection[int], nodes: Sequence[CandidateEntity]
) -> AlignedMention:
    """Find the entity that a mention names.

    A name wins over an alias, and either over any similarity. By similarity a mention joins the nearest node of its
    type whose name agrees with its own and that is itself, or has a neighbour, among ``near``: the entities of the
    same passage or session. Of equals the lower id wins.

    Args:
        key: the mention's name, normalised.
        kind: its type; None goes with any.
        vector: (d,), of length 1.
        near: its neighbourhood, ids of nodes.
        nodes: candidates.
    """
    ranked = sorted(nodes, key=lambda node: node.id)
    for way, position in (("name", slice(0, 1)), ("alias", slice(1, None))):
        for node in ranked:
            if key in node.keys[position]:
                return AlignedMention(node.id, "name" if way == "name" else "alias", 1.0)
    within = set(near)
    eligible = [
        node
        for node in ranked
        if (kind is None or node.kind is None or kind == node.kind)
        and (node.id in within or not within.isdisjoint(node.neighbours))
        and any(agree(key, other) for other in node.keys)
    ]
    if not eligible:
        return AlignedMention(None, "new", 0.0)
    similarities = np.stack([node.vector for node in eligible]) @ vector
    best = int(np.argmax(similarities))
    return AlignedMention(eligible[best].id, "similarity", float(similarities[best]))


ALIAS_PREDICATE = "also known as"
"""Of an entity and a name of it."""
_PERSONS = frozenset(
    ("date of birth", "place of birth", "date of death", "place of death", "spouse", "child", "father", "mother",
     "sibling", "citizenship")
)  # fmt: skip
_WORKS = frozenset(("directed by", "written by", "produced by", "release date", "starring", "country of origin"))
_PLACES = frozenset(("located in", "population", "capital", "country"))
_ONE_EACH = frozenset(
    ("date of birth", "place of birth", "date of death", "place of death", "father", "mother", "release date",
     "directed by")
)  # fmt: skip


def find_kind(predicates: Iterable[str]) -> str | None:
    """Return the kind of a thing by the predicates of its facts; None if they give none or several."""
    known_predicates = set(predicates)
    kinds = {"person": _PERSONS, "work": _WORKS, "place": _PLACES}
    matching_kinds = [kind for kind, kind_predicates in kinds.items() if kind_predicates & known_predicates]
    return matching_kinds[0] if len(matching_kinds) == 1 else None


def differ(one: Mapping[str, Collection[Hashable]], other: Mapping[str, Collection[Hashable]]) -> bool:
    """Whether what is told of two, predicate -> objects, cannot be told of one: two births, two fathers."""
    return any(
        set(one[predicate]).isdisjoint(other[predicate]) for predicate in _ONE_EACH & one.keys() & other.keys()
    )


def agree(one: str, other: str) -> bool:
    """Whether two normalised names can be the same thing's, by what tells namesakes apart.

    Their numbers are the same ("george ii" is not "george iii"). They begin alike, up to a short form ("ed",
    "edward"), and end alike where both have several words. What else only one of them has may be missing in the
    other; where both have words that the other lacks, those are short forms of each other.
    """
    first, second = _words(one), _words(other)
    if _numerals(first) != _numerals(second):
        return False
    first, second = _drop_numerals(first), _drop_numerals(second)
    if not first or not second:
        return one == other
    if not _is_short_form(first[0], second[0]):
        return False
    if len(first) > 1 and len(second) > 1 and first[-1] != second[-1]:
        return False
    shared = set(first) & set(second)
    odd, others = ([word for word in words if word not in shared] for words in (first, second))
    fewer, more = sorted((odd, others), key=len)
    return bool(shared) and all(any(_is_short_form(word, longer) for longer in more) for word in fewer)


def can_be_same_thing(one: str, other: str, *, person: bool) -> bool:
    """Whether names that ``agree`` may be taken for one thing's in a graph of anything, not of ten pages.

    They have several words, and tell the same in brackets, behind a comma and by "Jr."; only a person's name is
    still the same without a middle name ("Rayen District" is not "Rayen Rural District"), and an initial is no
    first name.
    """
    if _split_qualifiers(one) != _split_qualifiers(other):
        return False
    first, second = _words(one), _words(other)
    if not first or not second:
        return False
    if first == second:
        return len(first) > 1
    several = len(first) > 1 and len(second) > 1
    return person and several and (first[0] == second[0] or min(len(first[0]), len(second[0])) > 1)


def _split_qualifiers(name: str) -> tuple[str, str, frozenset[str]]:
    """Return the parts of a name in brackets and behind a comma, and its generation ("junior")."""
    brackets = _QUALIFIER.search(name)
    bare = _QUALIFIER.sub("", name)
    _, _, behind = bare.partition(",")
    return brackets[0].strip() if brackets else "", behind.strip(), _GENERATIONS & set(_WORD.findall(bare))


def ends(name: str) -> tuple[str, str]:
    """First and last word of a normalised name, but for titles, endings, numbers and what stands in brackets.

    Names of several words that ``agree`` have the same last one; of one word and several, that is the first one of
    the longer. What has no words is its own first and last.
    """
    words = _drop_numerals(_words(name))
    return (words[0], words[-1]) if words else (name, name)


def _is_short_form(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _words(name: str) -> list[str]:
    """Words of a name without titles before it, endings after it and what stands in brackets."""
    words: list[str] = _WORD.findall(_QUALIFIER.sub("", name))
    first, last = 0, len(words)
    while first < last - 1 and words[first] in _TITLES:
        first += 1
    while last > first + 1 and words[last - 1] in _ENDINGS:
        last -= 1
    return words[first:last]


def _numerals(words: Sequence[str]) -> set[str]:
    """The numbers in a name."""
    numbers = (_number(word, first=place == 0) for place, word in enumerate(words))
    return {number for number in numbers if number is not None}


def _drop_numerals(words: Sequence[str]) -> list[str]:
    return [word for place, word in enumerate(words) if _number(word, first=place == 0) is None]


def _number(word: str, *, first: bool) -> str | None:
    """The number that a word of a name is, in figures; a name does not begin with a Roman one."""
    if word in _ORDINALS:
        return _ORDINALS[word]
    if not _NUMERAL.fullmatch(word):
        return None
    if word[0].isdigit():
        return word.rstrip("stndrh")
    value = None if first else _roman(word)
    return None if value is None else str(value)


def _roman(word: str) -> int | None:
    """Its value; None for a lone "l"."""
    values = [_ROMAN[letter] for letter in word]
    if word == "l":
        return None
    return sum(
        -value if place + 1 < len(values) and value < values[place + 1] else value
        for place, value in enumerate(values)
    )
