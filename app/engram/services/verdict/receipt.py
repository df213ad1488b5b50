"""Receipt of a verdict: what became of it, and what it changed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engram.core.learning.logged_verdict import LoggedVerdict
from engram.core.learning.ratings import denies_answer
from engram.core.learning.states import Audit
from engram.core.passage_keys.key_effect import KeyEffect
from engram.storage.database import Reader
from engram.storage.feedback_log import audit_rows, feedback_events, logged_verdicts
from engram.storage.feedback_log.feedback_events import VerdictEvent

CREDITS = 200
"""Credits of one event that are shown."""
FindKeyEffect = Callable[[Reader, int, int, int], KeyEffect | None]
"""Finds the effect of a verdict of a collection on passage keys, with at most so many credits."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """An accepted event; if it was waited for, what it changed and what its expansions came to, if it has any.

    Attributes:
        effect: what the next answer to the question will show of it, or why nothing; None until it is applied.
    """

    event: VerdictEvent
    changes: list[Audit] | None = None
    keys: KeyEffect | None = None
    effect: str | None = None


def read_receipt(reader: Reader, event: VerdictEvent, find_key_effect: FindKeyEffect | None) -> Receipt:
    """Read the event's receipt with everything that it changed so far."""
    changes = audit_rows.read(reader, event.collection_id, [event.id])[event.id]
    return Receipt(
        event,
        changes,
        find_key_effect and find_key_effect(reader, event.collection_id, event.id, CREDITS),
        _read_effect(reader, event, changes),
    )


def _read_effect(reader: Reader, event: VerdictEvent, changes: Sequence[Audit]) -> str | None:
    if event.status not in {"applied", "revoked"}:
        return None  # a parked verdict may be of a version that cannot be read
    verdict = event.logged or logged_verdicts.read(reader, event.collection_id, [event.id])[event.id]
    if event.status == "applied" and verdict.rating == "withdrawn":
        if feedback_events.has_replaced_rating(reader, event):
            return "The judge's earlier rating of this answer is taken back."
        return "Nothing: the judge has not rated this answer."
    return describe_effect(event.status, verdict, changes)


def describe_effect(status: str, verdict: LoggedVerdict, changes: Sequence[Audit]) -> str:
    """Describe what the next answer to the same question shows of a verdict that withdraws none, or why nothing.

    Args:
        status: of the event, ``applied`` or ``revoked``.
        changes: of all states that the verdict moved.
    """
    if status == "revoked":
        return "Nothing: the verdict was taken back."
    raised = {one.sentence_id: one.target for one in changes if one.channel == "recall" and one.gain > 0}
    effects = [
        f"{count} {'sentence' if count == 1 else 'sentences'} {direction} for this question."
        for count, direction in (
            (sum(target == 1 for target in raised.values()), "up"),
            (sum(target == 0 for target in raised.values()), "down"),
        )
        if count
    ]
    if denies_answer(verdict):
        effects.append("The next answer to this question counts as less sufficient.")
    if effects:
        return " ".join(effects)
    if changes:
        return "Nothing: the judge's daily cap is used up."
    if verdict.reason == "wrong_answer":
        return "Nothing: the verdict judges the words of the answer, which retrieval does not learn from."
    return "Nothing: the verdict names no sentence, and does not say that evidence is missing."
