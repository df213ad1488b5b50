"""The kinds of jobs that there are, and which of them wait for each other."""

from engram.services.jobs.work import JobKind

# Keys are made anew in turn with passages that arrive, which are keyed like the others then.
INGEST = JobKind("ingest", "corpus")
REKEY = JobKind("rekey", "corpus", single=True)
# In a lane of its own: what poisons the memory is not to wait for an ingest of hours.
REVOCATION = JobKind("revocation", "learning")
ERASURE = JobKind("erasure", "learning")
# Passages and verdicts go on meanwhile.
REEMBED = JobKind("reembed", "vectors", single=True)
