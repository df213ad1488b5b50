"""The schema of the core: each table as SQLAlchemy metadata, the one place in which it is written by hand.

Tables of wings are in the same metadata, once the wings are loaded (``composition.wings``).

``migrations/versions`` brings databases there; a test compares the tables with a migrated one.

``collection_id`` leads every primary key and every foreign key, so no statement crosses collections.
Vectors are stored MAIN: a hop reads them by the hundred and must not follow TOAST pointers, as it does for vectors
that a page cannot hold (from about 2,000 numbers on). A vector column has no dimension, since a collection has one.
"""

from sqlalchemy import Sequence

from engram.storage.tables import (
    auth_tables,
    corpus_tables,
    erasure_tables,
    feedback_log_tables,
    job_tables,
    learning_tables,
    maintenance_tables,
    passage_key_tables,
    retrieval_tables,
    staging_tables,
)
from engram.storage.tables.table_base import metadata


def list_sequences() -> list[Sequence]:
    """The sequences of the schema, in the order of their definition."""
    return list(metadata._sequences.values())  # noqa: SLF001 - SQLAlchemy has no public list


__all__ = [
    "auth_tables",
    "corpus_tables",
    "erasure_tables",
    "feedback_log_tables",
    "job_tables",
    "learning_tables",
    "list_sequences",
    "maintenance_tables",
    "metadata",
    "passage_key_tables",
    "retrieval_tables",
    "staging_tables",
]
