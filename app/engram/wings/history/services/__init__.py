"""Use cases of history: the copy of a past moment, and the job that makes it."""
