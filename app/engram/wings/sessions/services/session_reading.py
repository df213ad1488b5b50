"""Stored sessions as somebody may see them, who need not see all passages that a session has read.

The database shows of a pool what the caller may read (``engram.migrations.rules``). What was made of passages in
words (sub-questions, notes, a planner's state, an answer) does not say of which. So none of it is shown once the
caller does not see all that the session has read, as when a passage got other readers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from engram.context import tenancy
from engram.storage.database import Database, Reader
from engram.wings.sessions.core.session import Round
from engram.wings.sessions.services.session_state import SessionState, build_state
from engram.wings.sessions.storage import sessions
from engram.wings.sessions.storage.sessions import StoredEvidence, StoredSession


@dataclass(frozen=True, slots=True)
class SessionRows:
    """Rows of a session."""

    stored: StoredSession
    rounds: Sequence[Round]
    evidence: Sequence[StoredEvidence]

    def to_state(self, collection_id: int) -> SessionState:
        """The session as planners see it."""
        return build_state(collection_id, self.stored, self.rounds, self.evidence)


def load_whole(reader: Reader, collection_id: int, session: UUID) -> SessionRows | None:
    """Load a session as the statement's reader may see it; None if there is none any more."""
    stored = sessions.find(reader, collection_id, session)
    if stored is None:
        return None
    return SessionRows(
        stored,
        sessions.rounds(reader, collection_id, session),
        sessions.evidence(reader, collection_id, session),
    )


def load(database: Database, collection_id: int, session: UUID) -> SessionRows | None:
    """The session as the present readers may see it; None if there is none any more."""
    bound = tenancy.get_visibility().readers is not None
    with database.snapshot() as reader:
        rows = load_whole(reader, collection_id, session)
        if rows is None or not bound:
            return rows
        visible = sessions.list_read(reader, collection_id, session, rows.stored.rounds)
    # After what was made of them: whoever got other readers meanwhile counts.
    with tenancy.allow_all_readers(), database.read() as reader:
        read = sessions.list_read(reader, collection_id, session, rows.stored.rounds)
    return rows if set(read) <= set(visible) else _withhold_words(rows, visible)


def _withhold_words(rows: SessionRows, visible: Sequence[int]) -> SessionRows:
    """Leave ids and numbers, and the session's own question."""
    stored = replace(
        rows.stored,
        notes=[],
        plan_state={},
        conclusion=None,
        warnings=[],
        ranked=[passage for passage in rows.stored.ranked if passage in set(visible)],
    )
    rounds = [replace(one, said={"withheld": True}, warnings=[]) for one in rows.rounds]
    return SessionRows(stored, rounds, [replace(one, gap=None) for one in rows.evidence])
