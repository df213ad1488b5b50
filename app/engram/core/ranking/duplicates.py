"""Near-duplicate texts: copies that differ in layout, in a footer, or in a word that carries no fact (ours).

Two texts are compared word by word after case, whitespace and punctuation are taken away. Candidates for the
comparison come from the lexical index. The rule is strict: a wrong collapse hides an answer, a missed one only
shows a text twice.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.passage_scores import HopReach

WORDS_PER_CHANGE = 50
"""A text may differ in one word for each so many words, and in one word at least."""
FEWEST_WORDS = 15
"""In a shorter text every word counts: it is a duplicate only if all words are equal."""
EDGE_WORDS = 40
"""Longest header or footer, in words."""
EDGE_SHARE = 0.5
"""Longest header or footer, as a share of the words both texts have."""
WINDOW = 3
"""Longest run of changed words, and the equal words in a row that end it."""
LEAST_SHARED = 0.5
"""Least share of the terms of either passage that both have, for their texts to be compared."""
BUCKETS = 2048
"""Terms are told apart by their ids modulo this number."""
SAME_COSINE = 1e-5
"""Up to this difference of cosine with the question, sentences of duplicates count as one."""

_WORD = re.compile(
    r"(?:(?<!\S)[-+−])?(?:[<>≤≥~±$€£¥]\s?)?\d(?:[\d.,:/]*\d)?[%°]?|[$€£¥<>≤≥±%°]|[^\W\d_]\w*[+#]*|_\w*"
)
_FOOTER = re.compile(
    r"©|\(c\)|copyright|all rights reserved|last (?:updated|reviewed|modified)|page \d+ of \d+|privacy policy"
    r"|terms (?:of use|and conditions)|cookie|https?://|www\.|confidential|printed (?:on|from|in)"
    r"|unsubscribe|newsletter|share this (?:page|article)|back to top|disclaimer|retrieved from|powered by"
    r"|subscribe to|contact us|internal use only|published by",
    re.IGNORECASE,
)
_CONTRASTS = frozenset(
    """
    no not never none neither nor without cannot nothing nobody unless except only
    all every each any some most many few several more less least both either half much little
    and or but if than
    must may might should can could shall will would need
    i you he she we they his her hers him our your their my
    before after since until during while always often rarely seldom sometimes first second third last next previous
    up down left right north south east west above below over under inside outside into out in on off
    from to by with against for
    increase increases increased increasing decrease decreases decreased decreasing rise rises rose fall falls fell
    raise raises raised lower lowers lowered reduce reduces reduced grow grows grew shrink shrinks shrank
    gain gains gained lose loses lost win wins won
    high higher highest low lowest large larger largest small smaller smallest big bigger long longer short shorter
    old older young younger new newer early earlier late later good better best bad worse worst
    hot cold fast slow maximum minimum max min major minor strong weak heavy light rich poor
    man men woman women boy boys girl girls male female father mother son daughter brother sister husband wife
    child children adult adults parent parents king queen
    open opened closed shut allow allowed allows forbid forbidden prohibited permit permitted deny denied
    accept accepted reject rejected true false yes positive negative safe unsafe legal illegal dead alive
    pass passed fail failed enable enabled disable disabled include includes included exclude excludes excluded
    start starts started stop stops stopped begin begins began end ends ended arrive arrives depart departs
    buy bought sell sold born died import export upper public private free paid
    second seconds minute minutes hour hours day days week weeks month months year years decade century
    mg kg g km m cm mm mile miles metre metres meter meters ml l litre litres percent dollar dollars euro euros
    pounds
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion
    once twice double triple quarter
    january february march april june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday spring summer autumn winter
    black white red green blue yellow
    """.split()
)
"""Words whose exchange changes what a text states."""
_NEGATIONS = ("un", "in", "im", "il", "ir", "dis", "non", "anti", "de", "mis", "under", "over", "pre", "post")


@lru_cache(maxsize=1024)  # near questions find the same copies
def is_duplicate(first: str, second: str) -> bool:
    """Whether two passages state the same: equal words, apart from a footer or header and few plain words.

    Numbers, dates, names, negations and words of contrast have to be equal. The relation is symmetric.

    Args:
        first, second: title and text of each.
    """
    one, other = _words(first), _words(second)
    if one[0] == other[0]:
        return bool(one[0])
    changes = _changes(one[0], other[0])
    if changes is None:
        return False
    words = min(len(one[0]), len(other[0]))
    changed = 0
    for left, right in changes:
        added = _edge(first, one, left, right, words) or _edge(second, other, right, left, words)
        if added:
            continue
        pair = [*one[1][slice(*left)], *other[1][slice(*right)]]
        if any(_states(word) for word in pair) or _is_opposite(one[0][slice(*left)], other[0][slice(*right)]):
            return False
        changed += max(left[1] - left[0], right[1] - right[0])
    if changed == 0:
        return True
    return words >= FEWEST_WORDS and changed <= max(1, words // WORDS_PER_CHANGE)


def pack_terms(passages: NDArray[np.int64], terms: NDArray[np.int64]) -> dict[int, NDArray[np.uint64]]:
    """Passage -> one bit for each of ``BUCKETS``, which is set if a term of the passage is in it, (BUCKETS / 64,).

    Args:
        passages, terms: a row for each term of each passage, (n,).
    """
    ids = np.unique(passages)
    has_bucket = np.zeros((len(ids), BUCKETS), dtype=bool)
    has_bucket[np.searchsorted(ids, passages), terms % BUCKETS] = True
    return dict(zip(ids.tolist(), np.packbits(has_bucket, axis=1).view(np.uint64), strict=True))


def find_similar_pairs(terms: Mapping[int, NDArray[np.uint64]]) -> list[tuple[int, int]]:
    """Pairs of passages that share so many terms that their texts have to be compared, each in id order.

    Terms are counted in ``BUCKETS``, so two passages of thousands of terms may be a pair by chance.

    Args:
        terms: passage -> its terms, see ``pack_terms``.
    """
    if not terms:
        return []
    ids = np.array(sorted(terms), dtype=np.int64)
    bits = np.stack([terms[passage] for passage in ids.tolist()])
    sizes = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
    shared = np.zeros((len(ids), len(ids)), dtype=np.int16)
    for column in np.ascontiguousarray(bits.T):  # one by one: together they would take 256 bytes for each pair
        shared += np.bitwise_count(column[:, None] & column)
    enough = shared >= LEAST_SHARED * (sizes[:, None] + sizes - shared)
    first, second = np.nonzero(np.triu(enough, 1))
    return list(zip(ids[first].tolist(), ids[second].tolist(), strict=True))


def stand_ins(ordered: Sequence[int], pairs: Iterable[tuple[int, int]], texts: Mapping[int, str]) -> dict[int, int]:
    """Duplicate -> the passage that stands for it: of its duplicates the first one that no other stands for.

    Args:
        ordered: passages, best first.
        pairs: passages whose texts have to be compared, see ``find_similar_pairs``.
        texts: passage -> title and text.
    """
    place = {passage: index for index, passage in enumerate(ordered)}
    better: dict[int, list[int]] = {}
    for pair in pairs:
        if all(passage in place and passage in texts for passage in pair):
            first, second = sorted(pair, key=place.__getitem__)
            better.setdefault(second, []).append(first)
    stand_in_by_passage: dict[int, int] = {}
    for passage in sorted(better, key=place.__getitem__):
        remaining = (
            one for one in sorted(better[passage], key=place.__getitem__) if one not in stand_in_by_passage
        )
        match = next((one for one in remaining if is_duplicate(texts[one], texts[passage])), None)
        if match is not None:
            stand_in_by_passage[passage] = match
    return stand_in_by_passage


def merge_duplicates(reach: HopReach, stand_in_by_passage: Mapping[int, int]) -> HopReach:
    """Return a hop's result with sentences of duplicates assigned to the passage that stands for them.

    Equal sentences of duplicates count once, so a copy moves no other passage down.

    Args:
        stand_in_by_passage: duplicate -> the passage that stands for it.
    """
    if not stand_in_by_passage or not len(reach.passage_ids):
        return reach
    holders = np.array(
        [stand_in_by_passage.get(passage, passage) for passage in reach.passage_ids.tolist()], dtype=np.int64
    )
    concerned = np.isin(holders, list(stand_in_by_passage.values()))
    steps = np.round(reach.semantic / SAME_COSINE).astype(np.int64)
    _, places = np.unique(holders, return_inverse=True)
    first = np.zeros(len(holders), dtype=bool)
    first[np.unique(places * (np.ptp(steps) + 1) + steps - steps.min(initial=0), return_index=True)[1]] = True
    keep = first | ~concerned
    title_activation: dict[int, float] = {}
    for passage, activation in reach.title_activation.items():
        holder = stand_in_by_passage.get(passage, passage)
        title_activation[holder] = max(activation, title_activation.get(holder, 0.0))
    return HopReach(holders[keep], reach.semantic[keep], reach.scores[keep], title_activation)


Span = tuple[int, int]
Words = tuple[tuple[str, ...], tuple[str, ...], tuple[Span, ...]]


@lru_cache(maxsize=1024)
def _words(text: str) -> Words:
    """The words of a text: as they are compared, as they are written, and where they stand."""
    plain = unicodedata.normalize("NFKC", text)
    matches = list(_WORD.finditer(plain))
    return (
        tuple(_normal(match.group()) for match in matches),
        tuple(match.group() for match in matches),
        tuple(match.span() for match in matches),
    )


def _normal(word: str) -> str:
    if any(character.isdigit() for character in word):
        word = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", word).replace("−", "-").replace(" ", "")
    return word.casefold()


def _changes(one: Sequence[str], other: Sequence[str]) -> list[tuple[Span, Span]] | None:
    """Spans in which two texts differ, in order; None if they differ in more than headers, footers and few words.

    Linear in the length of the texts: after each change the next ``WINDOW`` words have to be equal.
    """
    changes: list[tuple[Span, Span]] = []
    i = j = 0
    most = 2 + max(1, min(len(one), len(other)) // WORDS_PER_CHANGE)
    while i < len(one) and j < len(other):
        if one[i] == other[j]:
            i, j = i + 1, j + 1
            continue
        step = _header(one, other) if i == j == 0 else None
        step = step or _resume(one[i:], other[j:])
        if step is None:  # what is left is the end of both
            break
        changes.append(((i, i + step[0]), (j, j + step[1])))
        i, j = i + step[0], j + step[1]
        if len(changes) > most:
            return None
    if i < len(one) or j < len(other):
        changes.append(((i, len(one)), (j, len(other))))
    longest = max((max(a[1] - a[0], b[1] - b[0]) for a, b in changes), default=0)
    return None if longest > EDGE_WORDS else changes


def _resume(one: Sequence[str], other: Sequence[str]) -> tuple[int, int] | None:
    """The smallest steps after which both go on with equal words."""
    steps = (
        (a, b)
        for size in range(1, WINDOW + 1)
        for a in range(size + 1)
        for b in range(size + 1)
        if max(a, b) == size
    )
    for a, b in steps:
        left, right = one[a : a + WINDOW], other[b : b + WINDOW]
        whole = len(left) == WINDOW or (a + len(left) == len(one) and b + len(right) == len(other))
        if left == right and whole:
            return a, b
    return None


def _header(one: Sequence[str], other: Sequence[str]) -> tuple[int, int] | None:
    """Words before the common beginning, where one of the texts has a header."""
    for at in range(WINDOW + 1, EDGE_WORDS + 1):
        if one[at : at + 5] == other[:5] and len(other) >= 5:
            return at, 0
        if other[at : at + 5] == one[:5] and len(one) >= 5:
            return 0, at
    return None


def _edge(text: str, words: Words, own: Span, other_span: Span, shared: int) -> bool:
    """Whether a span that only this text has, at its beginning or end, is a header or footer."""
    if other_span[0] != other_span[1] or own[1] - own[0] > min(EDGE_WORDS, EDGE_SHARE * shared):
        return False
    if own[0] != 0 and own[1] != len(words[0]):
        return False
    plain = unicodedata.normalize("NFKC", text)
    start = 0 if own[0] == 0 else words[2][own[0] - 1][1]
    end = len(plain) if own[1] == len(words[0]) else words[2][own[1]][0]
    sentences = [piece for piece in re.split(r"(?<=[.!?])\s+|\n+", plain[start:end]) if re.search(r"\w", piece)]
    # Each sentence of it: a footer that ends with a fact is not one.
    return bool(sentences) and all(_FOOTER.search(sentence) for sentence in sentences)


def _states(word: str) -> bool:
    """Whether a word carries a fact: a number, a name, a contrast, or of a script in which names cannot be told."""
    if any(not character.isalpha() or character.isupper() for character in word):
        return True
    return word.casefold() in _CONTRASTS or any(unicodedata.category(one) == "Lo" for one in word)


def _is_opposite(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether a changed word is another one with a prefix that turns it round."""
    words = [*one, *other]
    return any(word in {prefix + base for prefix in _NEGATIONS} for word in words for base in words if word != base)
