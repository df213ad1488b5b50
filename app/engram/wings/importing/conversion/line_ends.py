"""Words that a hyphen cuts at the end of a line."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

MARK = "\x02"
"""What stands in the place of a hyphen and the line end after it."""
_HYPHENS = str.maketrans("‐‑", "--")
# What it may begin with is named for time: else each letter of each word would be tried.
_CUT = re.compile(r"(?:\b|(?=-))([\w-]*\w)(?:\x02|-\n)(\w+)")
_CUT_AT_OTHER = re.compile("[‐‑]\n")
_COMPOUND = re.compile(r"(?:well|self)-(?!less|ness|same|spring)\w{4,}", re.IGNORECASE)
_GOES_ON = re.compile(r"-\w")
_WORD = re.compile(r"\w+(?:-\w+)*")
_CONJUNCTIONS = frozenset("and or und oder bzw sowie et ou och og eller".split())
"""Words after the first of two compounds that share their end: "pre- and post-war", "Ein- und Ausgang"."""


def join_words(pages: Sequence[str]) -> list[str]:
    """Join the words that a hyphen cuts at the end of a line, as the rest of the document spells them.

    The hyphen is the word's own if the document has the word with it inside a line, at least as often as without it
    and perhaps with an ending ("pro-actively"), if another hyphen stands in the word ("state-of-the-art"), if a
    capital or a figure follows, if both parts are words of the document and the joined word is none, or after
    "well" and "self". Before a conjunction a space follows it.
    """
    pages = [_CUT_AT_OTHER.sub("-\n", page) for page in pages]
    if not any(map(_CUT.search, pages)):
        return list(pages)
    known = Counter(
        word.casefold() for page in pages for word in _WORD.findall(_CUT.sub(" ", page).translate(_HYPHENS))
    )
    parts = {part for word in known for part in word.split("-")}
    compounds = sorted(word for word in known if "-" in word)

    def has_own(hyphened: str) -> bool:
        at = bisect_left(compounds, hyphened)
        return at < len(compounds) and compounds[at].startswith(hyphened)

    def join(cut: re.Match[str]) -> str:
        first, rest = cut[1], cut[2]
        joined, hyphened = f"{first}{rest}", f"{first}-{rest}"
        if known[joined.casefold()] > known[hyphened.casefold()]:
            return joined
        goes_on = _GOES_ON.match(cut.string, cut.end()) is not None
        if rest in _CONJUNCTIONS and not goes_on:
            return f"{first}- {rest}"
        compound = (
            "-" in first
            or goes_on
            or not rest[0].islower()
            or has_own(hyphened.casefold())
            or _COMPOUND.fullmatch(hyphened) is not None
            or {first.casefold(), rest.casefold()} <= parts
        )
        return hyphened if compound else joined

    return [_CUT.sub(join, page) for page in pages]
