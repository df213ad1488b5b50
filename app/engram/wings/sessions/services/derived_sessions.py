"""Sessions in copies of past moments, in resets and in retention."""

from collections.abc import Mapping
from datetime import datetime

from engram.services.revocation.derived_state import DerivedState
from engram.storage.database import Writer
from engram.storage.revocation.copied_rows import Copy
from engram.wings.sessions.storage import session_erasure, sessions


class DerivedSessions(DerivedState):
    """Sessions. Nothing of them follows from the log, so there is nothing to verify."""

    def copy(self, writer: Writer, copy: Copy) -> None:
        """Erase the words of sub-questions: a copy has no sessions that would say what they were made of."""
        session_erasure.forget_in_copy(writer, copy.source, copy.target)

    def clear(self, writer: Writer, collection_id: int) -> Mapping[str, int]:
        """Remove all sessions, with their rounds and pools."""
        return {"session": sessions.delete_all(writer, collection_id)}

    def retire(self, writer: Writer, before: datetime, limit: int) -> int:
        """Remove sessions that ended before the moment."""
        return sessions.delete_ended(writer, before, limit)
