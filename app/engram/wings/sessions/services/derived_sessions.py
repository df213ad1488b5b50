"""Sessions in copies of past moments, in resets and in retention."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from engram.services.revocation.derived_state import DerivedState, Report
from engram.storage.database import Reader, Writer
from engram.storage.erasure.erased_log import Selection
from engram.storage.revocation.copied_rows import Copy
from engram.wings.sessions.storage import session_erasure, sessions


class DerivedSessions(DerivedState):
    """Sessions. Nothing of them follows from the log, so there is nothing to verify."""

    def copy(self, writer: Writer, copy: Copy, restored: Sequence[int], report: Report) -> bool:
        """Erase the words of sub-questions: a copy has no sessions that would say what they were made of."""
        session_erasure.forget_in_copy(writer, copy.source, copy.target)
        return True

    def clear(self, writer: Writer, collection_id: int) -> Mapping[str, int]:
        """Remove all sessions, with their rounds and pools."""
        return {"session": sessions.delete_all(writer, collection_id)}

    def find_related_queries(self, reader: Reader, collection_id: int, queries: Sequence[UUID]) -> Sequence[UUID]:
        """Find the other queries of the sessions that these belong to."""
        return sessions.find_related_queries(reader, collection_id, queries)

    def erase(
        self, writer: Writer, collection_id: int, selection: Selection, random_name: str
    ) -> Mapping[str, int]:
        """Remove the sessions with their rounds and pools, and the words of their sub-questions everywhere."""
        return {"session": session_erasure.erase_sessions(writer, collection_id, selection)}

    def retire(self, writer: Writer, before: datetime, limit: int) -> int:
        """Remove sessions that ended before the moment."""
        return sessions.delete_ended(writer, before, limit)
