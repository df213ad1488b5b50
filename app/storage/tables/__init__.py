"""The schema as SQLAlchemy metadata: what the migrations must add up to (a test compares the two).

``collection_id`` leads every primary key and every foreign key, so no statement crosses collections.
Vectors are stored PLAIN: a hop reads them by the hundred and must not follow TOAST pointers. The dimension of
a vector column is that of the configured encoder and is set by the migration.
"""

from app.storage.tables import (
    access,
    corpus,
    facts,
    jobs,
    keys,
    learning,
    log,
    retrieval,
    sessions,
    staging,
    upkeep,
)
from app.storage.tables.base import metadata

__all__ = [
    "access",
    "corpus",
    "facts",
    "jobs",
    "keys",
    "learning",
    "log",
    "metadata",
    "retrieval",
    "sessions",
    "staging",
    "upkeep",
]
