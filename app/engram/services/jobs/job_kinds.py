"""The kinds of jobs that there are, and which of them wait for each other."""

from uuid import UUID

from engram.services.jobs.work import Kind

# Keys are made anew in turn with passages that arrive, which are keyed like the others then.
INGEST = Kind("ingest", "corpus")
REKEY = Kind("rekey", "corpus", single=True)
# In a lane of its own: what poisons the memory is not to wait for an ingest of hours.
REVOCATION = Kind("revocation", "learning")
REPLAY = Kind("replay", "copies")
# Passages and verdicts go on meanwhile.
REEMBED = Kind("reembed", "vectors", single=True)
# Sessions have nothing to do with each other; so many of a collection may run at a time, as most of it is waiting.
SESSIONS = tuple(Kind("session", f"sessions-{lane}") for lane in range(4))


def session_kind(session: UUID) -> Kind:
    """The kind of this session's jobs: of one session they wait for each other."""
    return SESSIONS[session.int % len(SESSIONS)]
