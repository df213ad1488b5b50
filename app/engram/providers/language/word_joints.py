"""Words that are written together in one place and apart in another: wifi and Wi-Fi, user name and username."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from engram.providers.language.characters import normalise_characters
from engram.providers.language.lexical_terms import WORD, find_spaced_words, fold_accents, stem

HYPHENS = frozenset("-\u2010\u2011")
COMPOUNDING = frozenset({"af", "da", "de", "et", "fi", "hu", "is", "nl", "no", "sv"})
"""Languages that write compounds as one word, so that a word may stand inside another."""
LEAST_INSIDE = 6
"""Letters that a word has to have to be looked for inside others: shorter ones are by chance in too many."""
_MOST_PAIRS = 3
_JOINT = HYPHENS | {" "}


def list_joints(text: str) -> Iterator[tuple[int, str, str, str]]:
    """List each two words with one space or hyphen between them: where they begin, the first, this, the second."""
    for (start, first), (following, second) in pairwise(find_spaced_words(text)):
        between = text[start + len(first) : following]
        if between in _JOINT:
            yield start, first, between, second


def map_parts(word: str, readings: Collection[str]) -> dict[str, set[str]]:
    """Map what a word in lower case may begin or end with to its terms in all readings."""
    parts = sorted({part for at in range(1, len(word)) for part in (word[:at], word[at:])})
    stems = [stem(parts, language) for language in readings]
    return {part: set(its) for part, *its in zip(parts, *stems, strict=True)}


def find_apart(
    word: str,
    part_terms: Mapping[str, Collection[str]],
    counts: Mapping[str, int],
    sample_texts: Callable[[Sequence[str]], Mapping[str, Sequence[str]]],
    *,
    is_hyphen: bool,
) -> str | None:
    """Return how texts write a word, in lower case, in two; None if none does.

    Args:
        part_terms: as ``map_parts`` gives them.
        counts: term -> passages that have it.
        is_hyphen: whether only a hyphen may stand between the two, not a space.
    """
    held = {part: max((counts.get(term, 0), term) for term in its) for part, its in part_terms.items()}
    pairs = {(word[:at], word[at:]): min(held[word[:at]], held[word[at:]]) for at in range(1, len(word))}
    likely = sorted((pair for pair in pairs if pairs[pair][0]), key=lambda pair: -pairs[pair][0])[:_MOST_PAIRS]
    texts = sample_texts([pairs[pair][1] for pair in likely]) if likely else {}
    for pair in likely:
        joint = re.escape("".join(HYPHENS if is_hyphen or 1 in map(len, pair) else _JOINT))
        apart = re.compile(
            rf"(?<!\w){re.escape(pair[0])}[{re.escape(joint)}]{re.escape(pair[1])}(?!\w)", re.IGNORECASE
        )
        for text in texts.get(pairs[pair][1], ()):
            if found := apart.search(normalise_characters("NFC", text)):
                return str(found[0])
    return None


def list_inside(word: str, readings: Collection[str]) -> set[str]:
    """List how compounds may contain a word, in lower case; none where its languages write no compounds."""
    languages = COMPOUNDING.intersection(readings)
    if not languages or len(word) < LEAST_INSIDE:
        return set()
    inside = {fold_accents(word), *(stem([word], language)[0] for language in languages)}
    return {one for one in inside if len(one) >= LEAST_INSIDE - 2}


def find_containing(texts: Collection[str], inside: Collection[str]) -> str | None:
    """Return the first word that contains, without accents, one of some others; None if there is none."""
    for text in texts:
        for word in WORD.findall(normalise_characters("NFC", text)):
            folded = fold_accents(word.casefold())
            if any(one in folded for one in inside):
                return str(word)
    return None
