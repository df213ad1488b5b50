"""The kinds of jobs that there are, and which of them wait for each other."""

from engram.services.jobs.work import Kind

# Keys are made anew in turn with passages that arrive, which are keyed like the others then.
INGEST = Kind("ingest", "corpus")
REKEY = Kind("rekey", "corpus", single=True)
# In a lane of its own: what poisons the memory is not to wait for an ingest of hours.
REVOCATION = Kind("revocation", "learning")
ERASURE = Kind("erasure", "learning")
# Passages and verdicts go on meanwhile.
REEMBED = Kind("reembed", "vectors", single=True)
