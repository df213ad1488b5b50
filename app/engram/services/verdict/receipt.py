"""Receipt of a verdict: what became of it, and what it changed."""

from dataclasses import dataclass

from engram.core.filter.states import Audit
from engram.storage.database import Reader
from engram.storage.feedback_log import audit_rows
from engram.storage.feedback_log.feedback_events import VerdictEvent
from engram.storage.passage_keys import key_history
from engram.storage.passage_keys.key_history import KeyEffect

CREDITS = 200
"""Credits of one event that are shown."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """An accepted event; if it was waited for, what it changed and what its expansions came to, if it has any."""

    event: VerdictEvent
    changes: list[Audit] | None = None
    keys: KeyEffect | None = None


def read_receipt(reader: Reader, event: VerdictEvent) -> Receipt:
    """Read the event's receipt with everything that it changed so far."""
    changes = audit_rows.read(reader, event.collection_id, [event.id])[event.id]
    return Receipt(event, changes, key_history.effect(reader, event.collection_id, event.id, CREDITS))
