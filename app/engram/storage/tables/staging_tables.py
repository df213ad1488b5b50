"""Tables that ingest jobs stage in: waiting lines, and reasons for rejected ones."""

from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Table, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from engram.storage.tables.table_base import metadata, parent_key, tenant

ingest_line = Table(
    "ingest_line",
    metadata,
    tenant(),
    Column("job_id", Uuid, nullable=False),
    Column("line", BigInteger, nullable=False),
    Column("passage", JSONB, nullable=False),
    PrimaryKeyConstraint("collection_id", "job_id", "line"),
    parent_key("job", "job_id"),
    comment="Accepted and not yet ingested; a line leaves in the transaction that ingests it.",
)

ingest_error = Table(
    "ingest_error",
    metadata,
    tenant(),
    Column("job_id", Uuid, nullable=False),
    Column("line", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    PrimaryKeyConstraint("collection_id", "job_id", "line"),
    parent_key("job", "job_id"),
)
