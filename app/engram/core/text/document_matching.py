"""Match passages and sentences of a document's new version with those of the earlier one.

A passage that is found again keeps its identity, whatever its id is now, and so does a sentence that stands in
another passage. Each passage and each sentence of the earlier version is found again once at most.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

COMMON = 50
"""A sentence in more passages of one document than this, such as a heading, does not tell which one it is."""
LEAST_SHARE = 0.5
"""Share of a document's text that its new version under another source has at least."""
LEAST_LIKENESS = 0.8
"""Likeness of two texts of which the later is a revision of the earlier: another figure, name or spelling."""
MOST_WORK = 5_000_000
"""Pairs of letters, or of words, that are compared; where there are more, nothing is taken for a revision."""


@dataclass(frozen=True, slots=True)
class EarlierSentence:
    """A stored sentence; ``taught``: verdicts taught something about it."""

    id: int
    text: str
    taught: bool = False


@dataclass(frozen=True, slots=True)
class EarlierPassage:
    """A stored passage; ``digest`` is of its content, with its title."""

    id: int
    external_id: str
    digest: bytes
    text: str
    sentences: Sequence[EarlierSentence]


@dataclass(frozen=True, slots=True)
class NewPassage:
    """A passage of the new version, with its sentences in order."""

    external_id: str
    digest: bytes
    text: str
    sentences: Sequence[str]


@dataclass(frozen=True, slots=True)
class Placement:
    """The new places of earlier passages and sentences.

    Attributes:
        passages: earlier passage -> external id of the new passage that it becomes.
        sentences: sentence that leaves its passage -> external id of the new passage, and its position there.
        exchanged: equal sentences that take each other's place: one that verdicts taught something about, and one
            that the new version has.
        donors: new passage that only receives sentences -> an earlier passage that some come from.
        removed: earlier passages that the new version does not have.
    """

    passages: Mapping[int, str] = field(default_factory=dict)
    sentences: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    exchanged: Sequence[tuple[int, int]] = ()
    donors: Mapping[str, int] = field(default_factory=dict)
    removed: Sequence[int] = ()


def place(earlier: Sequence[EarlierPassage], new: Sequence[NewPassage]) -> Placement:
    """Find the earlier passages and sentences in a new version: by content, by text, then by shared sentences."""
    passages = match_passages(earlier, new)
    removed = [passage.id for passage in earlier if passage.id not in passages]
    return _match_sentences(earlier, new, replace(Placement(), passages=passages, removed=removed))


def match_passages(earlier: Sequence[EarlierPassage], new: Sequence[NewPassage]) -> dict[int, str]:
    """Match earlier passages with new ones; earlier passage -> external id of the new passage.

    Equal content goes before equal text, this before the most characters in shared sentences, and this before a
    text that was revised. Among equals the same external id goes first, then the order.
    """
    matched: dict[int, str] = {}
    unmatched, incoming = list(earlier), list(new)
    for key in (_digest, _text):
        for same_id in (True, False):
            _match_equal(unmatched, incoming, key, matched, same_id=same_id)
            used = set(matched.values())
            unmatched = [passage for passage in unmatched if passage.id not in matched]
            incoming = [passage for passage in incoming if passage.external_id not in used]
    _match_overlapping(unmatched, incoming, matched)
    used = set(matched.values())
    unplaced = [passage for passage in incoming if passage.external_id not in used]
    words_by_id = {passage.id: passage.text.split() for passage in unmatched if passage.id not in matched}
    for passage_id, (at, _) in match_revisions(words_by_id, [passage.text.split() for passage in unplaced]).items():
        matched[passage_id] = unplaced[at].external_id
    return matched


def match_revisions(
    earlier: Mapping[int, Sequence[str]], new: Sequence[Sequence[str]]
) -> dict[int, tuple[int, float]]:
    """Match texts that are gone with texts in their place that say the same but for a figure, a name or a spelling.

    Args:
        earlier: id -> letters of the text, or its words, of those that are gone.
        new: letters or words of the texts that were not there before.

    Returns:
        Id of an earlier text -> place of its revision in ``new``, and how alike both are, in
        [``LEAST_LIKENESS``, 1]: twice the length of common runs by all length (Ratcliff and Obershelp 1988). The
        most alike come first.
    """
    if sum(map(len, earlier.values())) * sum(map(len, new)) > MOST_WORK:
        return {}
    pairs = []
    for key, before in earlier.items():
        matcher = SequenceMatcher(None, b=before, autojunk=False)
        for at, after in enumerate(new):
            matcher.set_seq1(after)
            if min(matcher.real_quick_ratio(), matcher.quick_ratio()) >= LEAST_LIKENESS:
                pairs.append((-matcher.ratio(), key, at))
    matched: dict[int, tuple[int, float]] = {}
    taken: set[int] = set()
    for unlike, key, at in sorted(pairs):
        if -unlike >= LEAST_LIKENESS and key not in matched and at not in taken:
            matched[key] = (at, -unlike)
            taken.add(at)
    return matched


def match_documents(
    earlier: Mapping[str, Mapping[Hashable, int]], new: Mapping[str, Mapping[Hashable, int]]
) -> dict[str, str]:
    """Match documents that are gone with new ones; source of the earlier document -> source of the new one.

    Args:
        earlier, new: source -> the document's sentences, each with its length.
    """
    holders: defaultdict[Hashable, list[str]] = defaultdict(list)
    for source, sentences in earlier.items():
        for sentence in sentences:
            holders[sentence].append(source)
    shared: Counter[tuple[str, str]] = Counter()
    for source, sentences in new.items():
        for sentence, length in sentences.items():
            sources = holders.get(sentence, ())
            for other in sources if len(sources) <= COMMON else ():
                shared[other, source] += length
    sizes = {source: sum(sentences.values()) for source, sentences in earlier.items()}
    shares = {pair: length / sizes[pair[0]] for pair, length in shared.items()}
    matched: dict[str, str] = {}
    taken: set[str] = set()
    for (before, after), share in sorted(shares.items(), key=lambda one: (-one[1], one[0])):
        if share >= LEAST_SHARE and before not in matched and after not in taken:
            matched[before] = after
            taken.add(after)
    return matched


def _digest(passage: EarlierPassage | NewPassage) -> Hashable:
    return passage.digest


def _text(passage: EarlierPassage | NewPassage) -> Hashable:
    return passage.text


def _match_equal(
    earlier: Iterable[EarlierPassage],
    new: Iterable[NewPassage],
    key: Callable[[EarlierPassage | NewPassage], Hashable],
    matched: dict[int, str],
    *,
    same_id: bool,
) -> None:
    waiting: defaultdict[Hashable, list[EarlierPassage]] = defaultdict(list)
    for passage in reversed(list(earlier)):
        waiting[key(passage), passage.external_id if same_id else None].append(passage)
    for found in new:
        if equal := waiting.get((key(found), found.external_id if same_id else None)):
            matched[equal.pop().id] = found.external_id


def _match_overlapping(
    earlier: Sequence[EarlierPassage], new: Sequence[NewPassage], matched: dict[int, str]
) -> None:
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for place_before, passage in enumerate(earlier):
        for text in {sentence.text for sentence in passage.sentences}:
            holders[text].append(place_before)
    shared: Counter[tuple[int, int]] = Counter()
    for place_after, wanted in enumerate(new):
        for text in set(wanted.sentences):
            places = holders.get(text, ())
            for place_before in places if len(places) <= COMMON else ():
                shared[place_before, place_after] += len(text)

    def rank(pair: tuple[int, int]) -> tuple[int, bool, tuple[int, int]]:
        return -shared[pair], earlier[pair[0]].external_id != new[pair[1]].external_id, pair

    taken: set[int] = set()
    for before, after in sorted(shared, key=rank):
        if earlier[before].id not in matched and after not in taken:
            matched[earlier[before].id] = new[after].external_id
            taken.add(after)


def _match_sentences(
    earlier: Sequence[EarlierPassage], new: Sequence[NewPassage], placement: Placement
) -> Placement:
    """Give new passages the sentences that earlier ones have no more use for."""
    kept, spare = _divide_sentences(earlier, new, placement.passages)
    moved: dict[int, tuple[str, int]] = {}
    exchanged: list[tuple[int, int]] = []
    donors: dict[str, int] = {}
    received = set(placement.passages.values())
    for wanted in new:
        for position, text in enumerate(wanted.sentences):
            own = kept[wanted.external_id, text]
            held = own.pop(0) if own else None
            if not spare[text]:
                continue
            sentence, origin = spare[text][-1]
            if held is None:
                moved[sentence.id] = (wanted.external_id, position)
                if wanted.external_id not in received:
                    donors.setdefault(wanted.external_id, origin)
            elif sentence.taught and not held.taught:
                exchanged.append((sentence.id, held.id))
            else:
                continue
            spare[text].pop()
    return replace(placement, sentences=moved, exchanged=exchanged, donors=donors)


def _divide_sentences(
    earlier: Sequence[EarlierPassage], new: Sequence[NewPassage], passages: Mapping[int, str]
) -> tuple[
    defaultdict[tuple[str, str], list[EarlierSentence]], defaultdict[str, list[tuple[EarlierSentence, int]]]
]:
    """Divide the earlier sentences into those that their passage still has, and the rest.

    Returns:
        New passage, text -> sentences that stay; text -> the others, each with its passage, taught ones last.
    """
    kept: defaultdict[tuple[str, str], list[EarlierSentence]] = defaultdict(list)
    spare: defaultdict[str, list[tuple[EarlierSentence, int]]] = defaultdict(list)
    counts = {passage.external_id: Counter(passage.sentences) for passage in new}
    for passage in earlier:
        target = passages.get(passage.id, "")
        remaining = counts.get(target, Counter())
        for sentence in sorted(passage.sentences, key=lambda one: not one.taught):
            if len(kept[target, sentence.text]) < remaining[sentence.text]:
                kept[target, sentence.text].append(sentence)
            else:
                spare[sentence.text].append((sentence, passage.id))
    for others in spare.values():
        others.sort(key=lambda one: one[0].taught)
    return kept, spare
