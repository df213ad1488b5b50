"""Grouping answers that say the same, so that a vote does not split over the wording of a name."""

import re
from collections.abc import Sequence

from engram.core.text.words import words

_ARTICLES = frozenset({"the", "a", "an"})
_CONNECTORS = frozenset({"of", "de", "da", "di", "du", "del", "der", "den", "la", "le", "van", "von", "and", "the"})
"""Words that names have in lower case."""
_WORD = re.compile(r"[^\W_]+")
_SHORTEST_BEGINNING = 2
"""Fewest words by which a beginning means the longer name: "New York" does, "Paris" is not Paris Hilton."""

_Key = tuple[str, ...]


def group_answers(answers: Sequence[str]) -> list[list[int]]:
    """Group answers that say the same: places in ``answers``, groups and members in order of first mention.

    Case, punctuation and articles make no difference. A name joins the longer name that it ends, begins or
    abbreviates ("Czerny", "C. Czerny", "Carl Czerny"), but not where two longer names differ.
    """
    keys = [_key(answer) for answer in answers]
    names = {key: _is_name(answer) for key, answer in reversed(list(zip(keys, answers, strict=True)))}
    distinct = list(dict.fromkeys(keys))
    longer = {
        key: [other for other in distinct if names[key] and names[other] and _is_short_for(key, other)]
        for key in distinct
    }
    joined = {key: _find_longest(key, longer) for key in distinct}
    groups: dict[_Key, list[int]] = {}
    for place, key in enumerate(keys):
        groups.setdefault(joined[key], []).append(place)
    return list(groups.values())


def _key(answer: str) -> _Key:
    answer_words = words(answer)
    return tuple(word for word in answer_words if word not in _ARTICLES) or tuple(answer_words)


def _is_name(answer: str) -> bool:
    """Tell whether an answer is written as a name: capitals, but for connecting words, and no digits."""
    answer_words = _WORD.findall(answer)
    return (
        any(word[0].isupper() for word in answer_words)
        and all(word[0].isupper() or word in _CONNECTORS for word in answer_words)
        and not any(character.isdigit() for character in answer)
    )


def _is_short_for(short: _Key, long: _Key) -> bool:
    if short == long or not short or len(short) > len(long):
        return False
    ends_it = _has_same_words(short, long[len(long) - len(short) :])
    begins_it = len(short) >= _SHORTEST_BEGINNING and _has_same_words(short, long[: len(short)])
    first_and_last = len(short) == _SHORTEST_BEGINNING < len(long) and _has_same_words(short, (long[0], long[-1]))
    return ends_it or begins_it or first_and_last


def _has_same_words(short: _Key, long: _Key) -> bool:
    """Tell whether words are the same, or an initial stands for one."""
    return all(
        one == other or (len(one) == 1 and other.startswith(one)) for one, other in zip(short, long, strict=True)
    )


def _find_longest(key: _Key, longer: dict[_Key, list[_Key]]) -> _Key:
    """The longest name that a name is short for; the name itself where those names differ."""
    candidates = sorted(longer[key], key=lambda name: (len(name), len("".join(name))))
    if not candidates:
        return key
    longest = candidates[-1]
    return longest if all(one == longest or longest in longer[one] for one in candidates) else key
