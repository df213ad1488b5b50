"""Which part of a sentence is stated: no question, denial, plan or hearsay."""

import re
from collections.abc import Sequence

from engram.providers.language.facts.sentence_items import Item

_NOTHING = re.compile(
    r"""\?|^if\b|^(?:there|it)\ (?:is|was)\ (?:no|not|wrong|false|untrue|incorrect|said|believed|thought|rumoured|
    rumored|alleged|possible|unclear|planned|proposed|hoped|expected|unlikely|likely)\b
    |\b(?:not\ true|untrue|no\ truth|is\ false|is\ wrong|was\ wrong|is\ incorrect)\b
    |\brumou?rs?\b|\ballege|\breportedly\b|\bapparently\b|\bsupposedly\b|\bpurported|\bsupposed\ to\b
    |^according\ to\b|\bcontrary\ to\b|\bused\ to\b|\bwrongly\b|\bmistakenly\b|\bprobably\b|\bperhaps\b|\bmaybe\b
    |\bas\ far\ as\b|\bin\ error\b""",
    re.VERBOSE,
)
"""Words with which a whole sentence states nothing."""
_UNCERTAIN = frozenset(
    """ask asked asks assume assumed assumes believe believed believes claim claimed claims denied denies deny
    doubt doubted doubts expect expected expects guess guesses hear heard hears hope hoped hopes if imagine
    imagined imagines insist insisted insists predicted predicts propose proposed proposes reported reports
    said say says speculated suggest suggested suggests suspect suspected suspects tell tells think thinks
    thought told unless want wanted wants whether wish wished wishes wonder wondered wonders""".split()
)
"""What follows one of these is somebody's word, a wish or a condition."""


_DENIED = re.compile(
    r"""\?["'”’)\s]*$
    |^(?:it|there)\ (?:is|was)\ (?:not\ true|not\ the\ case|no\ truth|wrong|false|untrue|incorrect)\b
    |\bthat\ is\ (?:not\ true|wrong|untrue|false)\b""",
    re.VERBOSE,
)


def is_denied(text: str) -> bool:
    """Whether a sentence is a question, or says that something is wrong."""
    return _DENIED.search(" ".join(text.casefold().split())) is not None


def is_stated(text: str) -> bool:
    """Whether a sentence states anything at all."""
    return _NOTHING.search(" ".join(text.casefold().split())) is None


def stated(text: str, items: Sequence[Item]) -> list[Item]:
    """The items that a sentence states: all up to the first word that makes the rest uncertain."""
    if not is_stated(text):
        return []
    end = next((place for place, item in enumerate(items) if item.word in _UNCERTAIN), len(items))
    return list(items[:end])
