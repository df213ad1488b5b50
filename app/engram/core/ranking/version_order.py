"""Order of passages by time: the version that a question is about comes first, and newer texts may be preferred."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engram.core.text.document_versions import Standing
from engram.core.text.temporal import TimeExpression

AskedVersion = Literal["last", "then", "previous", "changes"]
"""The version that a question is about: the one that holds, the one of a time that it names, the one before, or how
they differ, for which the two last ones lead."""
LEAST_SHARED_WORDS = 0.5
"""Share of the words of the shorter of two passages that the other one has, if they are versions of one text."""
HALVING = math.log(2)
"""What each half-life by which a text is newer adds to its log odds."""

_WORD = re.compile(r"[^\W_]+")
_CHANGES = re.compile(
    r"(?<!\bi )(?<!\bwe )(?<!\bto )(?<!\byou )(?<!\bcan )(?<!\bmay )(?<!\bone )(?<!\bmust )\bchange\b"
    r"|\bchang(?:es|ed)\b"
    r"|\bdiffer(?:s|ence|ences|ent)?\b|\bcompared\b|\bsich\s+(?:ver)?änder|\b(?:ver)?änder(?:t|te|ten|ung|ungen)\b"
    r"|\bgeändert|\bunterschied|\bneuerung|\bchangé|\bchangements?\b|\bmodifi(?:é|cation)|\bdifféren|\bévolu"
    r"|(?<!\bcómo )\bcambi(?:o|os|ó|ado|aron|a)\b|\bdiferenci|\bmodific(?:ó|ad|aci|aron)",
    re.IGNORECASE,
)
"""Words of a question about a change. Who asks how to change something asks for an instruction."""
_PREVIOUS = re.compile(
    r"\b(?:previous|previously|former|formerly|earlier|originally|used to|before (?:that|the change)|until then"
    r"|früher|frühere[rnms]?|vorher|vorherige[rnms]?|bisher|bisherige[rnms]?|zuvor|ehemals|ursprünglich"
    r"|auparavant|précédente?s?|précédemment|autrefois|avant le changement|anciennement"
    r"|antes|anterior|anteriores|anteriormente|previamente)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PassageVersion:
    """A passage of a document that is in a chain of versions.

    Attributes:
        document: its document.
        chain: the last document of the chain.
        steps: replacements from its document to the last version.
        is_stated: whether the chain does not rest on titles and dates alone.
        words: of its text.
    """

    document: int
    chain: int
    steps: int
    valid_from: date | None
    status: Standing | None
    is_stated: bool
    words: frozenset[str]
    valid_until: date | None = None


def find_asked_version(question: str, intervals: Sequence[TimeExpression]) -> AskedVersion:
    """Find which version a question is about.

    Args:
        intervals: of time that it names.
    """
    if _CHANGES.search(question):
        return "changes"
    if intervals:
        return "then"
    return "previous" if _PREVIOUS.search(question) else "last"


def read_words(text: str) -> frozenset[str]:
    """The words of a text, as passages are compared by."""
    return frozenset(word.casefold() for word in _WORD.findall(text))


def order_versions(
    ranked: Sequence[int],
    versions: Mapping[int, PassageVersion],
    requested: AskedVersion,
    intervals: Sequence[TimeExpression],
    today: date,
) -> list[int]:
    """Order passages so that the asked version of each text takes the best place that a version of it has.

    Places are exchanged among versions of one text alone; every other passage keeps its place.

    Args:
        ranked: passages, best first.
        versions: passage -> its version, for those in a chain.
        requested: which version the question is about.
        intervals: of time that the question names, for ``then``.
        today: a version with a later date does not hold yet.
    """
    ordered = list(ranked)
    for group in _group_versions(ranked, versions):
        places = sorted(ranked.index(passage) for passage in group)
        for place, passage in zip(places, _sort_group(group, versions, requested, intervals, today), strict=True):
            ordered[place] = passage
    return ordered


def _group_versions(ranked: Sequence[int], versions: Mapping[int, PassageVersion]) -> list[list[int]]:
    """Groups of passages that are versions of one text, one of each document, in the order of their best."""
    free = [passage for passage in ranked if passage in versions]
    groups = []
    while free:
        seed = free.pop(0)
        group = [seed]
        own = versions[seed]
        linked = dict.fromkeys(
            versions[one].document
            for one in free
            if versions[one].chain == own.chain and versions[one].document != own.document
        )
        for document in linked:
            mates = [one for one in free if versions[one].document == document]
            shares = [_share_words(own.words, versions[one].words) for one in mates]
            best = max(range(len(mates)), key=lambda at: (shares[at], -at))
            if shares[best] < LEAST_SHARED_WORDS and not own.is_stated:
                continue
            mate = mates[best] if shares[best] >= LEAST_SHARED_WORDS else mates[0]
            group.append(mate)
            free.remove(mate)
        if len(group) > 1:
            groups.append(group)
    return groups


def _share_words(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / max(min(len(first), len(second)), 1)


def _sort_group(
    group: Sequence[int],
    versions: Mapping[int, PassageVersion],
    requested: AskedVersion,
    intervals: Sequence[TimeExpression],
    today: date,
) -> list[int]:
    """The passages of a group, the asked version first, then the later before the earlier."""
    newest = sorted(
        group, key=lambda one: (versions[one].steps, -(versions[one].valid_from or date.min).toordinal())
    )
    moment = today
    if requested == "then":
        ends = [one.end for one in intervals]
        if ends and all(end is not None for end in ends):
            moment = date.fromordinal(max(end.toordinal() for end in ends if end is not None) - 1)
    in_time = [one for one in newest if _holds_by(versions[one], moment)]
    sound = [one for one in in_time if versions[one].status != "draft"]
    # A rule for some months leaves the one before it in force after them.
    sound = [one for one in sound if not _has_ended(versions[one], moment)] or sound
    if requested != "then":
        # The last one may be withdrawn without a successor.
        sound = [one for one in sound if versions[one].status != "retired"] or sound
    first = (sound or in_time or newest[-1:])[0]
    if requested == "previous":
        after = newest[newest.index(first) + 1 :]
        first = after[0] if after else first
    if requested == "changes":
        start = newest.index(first)
        return [*newest[start:], *newest[:start]]
    return [first, *(one for one in newest if one != first)]


def _holds_by(version: PassageVersion, moment: date) -> bool:
    return version.valid_from is None or version.valid_from <= moment


def _has_ended(version: PassageVersion, moment: date) -> bool:
    return version.valid_until is not None and version.valid_until < moment


def compute_age_terms(dates: Sequence[date | None], half_life_days: float, today: date) -> NDArray[np.float64]:
    """Compute what the age of passages adds to their log odds, (n,), if texts hold for a time with a half-life.

    A text of age a holds with probability 2^(-a / half-life), as at a constant rate of replacement, so each
    half-life halves the odds. Ages count from their median, so that passages without a date, or with a later one,
    get 0 and are neither above nor below the others.

    Args:
        dates: since when each passage holds, (n,).
    """
    ages = np.array([np.nan if one is None or one > today else (today - one).days for one in dates])
    is_dated = ~np.isnan(ages)
    if not is_dated.any():
        return np.zeros(len(ages))
    return np.where(is_dated, (np.median(ages[is_dated]) - ages) * (HALVING / half_life_days), 0.0)
