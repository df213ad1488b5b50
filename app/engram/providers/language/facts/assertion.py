"""Assertion: the part of a sentence that is stated, without question, denial, condition, plan or hearsay."""

import re
from collections.abc import Sequence

from engram.providers.language.facts.sentence_items import Item

_UNCERTAIN_SENTENCE = re.compile(
    r"""\?|["“”„«»]|^(?:if|had|were|should|would|could|did|does|do|is|are|was|can|may|suppose|imagine|assuming)\b
    |^(?:there|it)\ (?:is|was)\ (?:no|not|wrong|false|untrue|incorrect|said|believed|thought|rumoured|
    rumored|alleged|possible|unclear|planned|proposed|hoped|expected|unlikely|likely)\b
    |\b(?:not\ true|untrue|no\ truth|is\ false|is\ wrong|was\ wrong|is\ incorrect)\b
    |\brumou?rs?\b|\ballege|\breportedly\b|\bapparently\b|\bsupposedly\b|\bpurported|\bsupposed\ to\b
    |\baccording\ to\b|\bcontrary\ to\b|\bused\ to\b|\bwrongly\b|\bmistakenly\b|\bprobably\b|\bperhaps\b|\bmaybe\b
    |\bas\ far\ as\b|\bin\ error\b|\bin\ case\b|\bprovided\b|\bas\ if\b|\bas\ though\b|\bunless\b|\bwhether\b
    |\bif\b|\bmistake\b|\bhypothetical|\bfictional\b|\bso-called\b|\bpossibly\b|\blikely\b|\bunconfirmed\b
    |,\ (?:[\w’'.]+\ ){0,4}(?:said|says|told|claim(?:s|ed)?|believe[sd]?|thinks?|thought|reported|wrote|writes)
    (?:\ [\w’'.]+){0,4}[.!]?$""",
    re.VERBOSE,
)
"""Words and marks with which a whole sentence states nothing."""
_UNCERTAIN_REST = frozenset(
    """ask asked asks assume assumed assumes believe believed believes claim claimed claims denied denies deny
    doubt doubted doubts expect expected expects feared fears guess guesses hear heard hears hope hoped hopes
    imagine imagined imagines insist insisted insists predicted predicts propose proposed proposes reported reports
    said say says speculated suggest suggested suggests suspect suspected suspects tells think thinks
    thought told want wanted wants wish wished wishes wonder wondered wonders""".split()
)
"""Words behind which everything is somebody's word, a wish or a plan."""
_FACTIVE_OPENINGS = re.compile(
    r"^(?:i\ am|we\ are|i'm|we're)\ (?:very\ |so\ )?(?:sorry|sad|glad|happy|pleased|delighted|proud)\ to\ "
    r"(?:tell|inform|let|announce|say|report)(?:\ you)?\b"
)
_DENIED = re.compile(
    r"""\?["'”’)\s]*$
    |^(?:it|there)\ (?:is|was)\ (?:not\ true|not\ the\ case|no\ truth|wrong|false|untrue|incorrect)\b
    |\bthat\ is\ (?:not\ true|wrong|untrue|false)\b""",
    re.VERBOSE,
)


def _reports_to(items: Sequence[Item], at: int) -> bool:
    return items[at].word in {"reports", "reported"} and at + 1 < len(items) and items[at + 1].word == "to"


def is_denied(text: str) -> bool:
    """Return whether a sentence is a question, or says that something is wrong."""
    return _DENIED.search(" ".join(text.casefold().split())) is not None


def is_asserted(text: str) -> bool:
    """Return whether a sentence states anything at all."""
    return _UNCERTAIN_SENTENCE.search(" ".join(text.casefold().split())) is None


def select_asserted_items(text: str, items: Sequence[Item]) -> list[Item]:
    """Return the items that a sentence states: all up to the first word that makes the rest uncertain."""
    if not is_asserted(text):
        return []
    factive = _FACTIVE_OPENINGS.match(" ".join(text.casefold().split()))
    start = factive.end() if factive is not None else 0
    end = next(
        (
            place
            for place, item in enumerate(items)
            if item.word in _UNCERTAIN_REST and item.start >= start and not _reports_to(items, place)
        ),
        len(items),
    )
    return list(items[:end])
