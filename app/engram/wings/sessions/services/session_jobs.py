"""Kinds of jobs of sessions."""

from uuid import UUID

from engram.services.jobs.work import JobKind

SESSIONS = tuple(JobKind("session", f"sessions-{lane}") for lane in range(4))
"""Sessions do not wait for each other: so many of a collection may run at a time, as most of it is waiting."""


def session_kind(session: UUID) -> JobKind:
    """The kind of this session's jobs: of one session they wait for each other."""
    return SESSIONS[session.int % len(SESSIONS)]
