"""Tables that ingest jobs stage in: waiting lines, and reasons for rejected ones."""

from sqlalchemy import BigInteger, PrimaryKeyConstraint, Table, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from engram.storage.tables.table_base import build_inherited_collection_column, build_parent_key, metadata, require

ingest_line = Table(
    "ingest_line",
    metadata,
    build_inherited_collection_column(),
    require("job_id", Uuid),
    require("line", BigInteger),
    require("passage", JSONB),
    PrimaryKeyConstraint("collection_id", "job_id", "line"),
    build_parent_key("job", "job_id"),
    comment="Lines that wait for their ingest; a line leaves in the transaction that ingests it.",
)

ingest_error = Table(
    "ingest_error",
    metadata,
    build_inherited_collection_column(),
    require("job_id", Uuid),
    require("line", BigInteger),
    require("reason", Text),
    PrimaryKeyConstraint("collection_id", "job_id", "line"),
    build_parent_key("job", "job_id"),
)
