"""The schema as SQLAlchemy metadata: what the migrations must add up to (a test compares the two).

``collection_id`` leads every primary key and every foreign key, so no statement crosses collections.
Vectors are stored PLAIN: a hop reads them by the hundred and must not follow TOAST pointers. The dimension of
a vector column is that of the configured encoder and is set by the migration.
"""

from engram.storage.tables import (
    auth_tables,
    corpus_tables,
    fact_tables,
    feedback_log_tables,
    job_tables,
    learning_tables,
    maintenance_tables,
    passage_key_tables,
    pull_tables,
    retrieval_tables,
    session_tables,
    staging_tables,
)
from engram.storage.tables.table_base import metadata

__all__ = [
    "auth_tables",
    "corpus_tables",
    "fact_tables",
    "feedback_log_tables",
    "job_tables",
    "learning_tables",
    "maintenance_tables",
    "metadata",
    "passage_key_tables",
    "pull_tables",
    "retrieval_tables",
    "session_tables",
    "staging_tables",
]
