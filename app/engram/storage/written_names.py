"""Read how passages write a name."""

from engram.storage.database import READER_ROLE

WRITTEN_NAME = f"CASE current_user WHEN '{READER_ROLE}' THEN e.name ELSE e.surface END"
"""SQL: how an ``entity e`` is written.

It is kept as the passage writes it that had it first, which may be hidden. So whoever sees some passages only gets
it normalised.
"""
