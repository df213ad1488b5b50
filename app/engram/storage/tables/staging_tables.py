"""Tables that ingest jobs stage in: documents, waiting lines, and reasons for rejected ones."""

from sqlalchemy import BigInteger, Boolean, Column, PrimaryKeyConstraint, Table, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from engram.storage.tables.table_base import (
    build_inherited_collection_column,
    build_parent_key,
    build_partial_index,
    metadata,
    require,
)

ingest_line = Table(
    "ingest_line",
    metadata,
    build_inherited_collection_column(),
    require("job_id", Uuid),
    require("line", BigInteger),
    require("passage", JSONB),
    Column("document", Text, comment="Source of the document that the passage is made of."),
    PrimaryKeyConstraint("collection_id", "job_id", "line"),
    build_parent_key("job", "job_id"),
    build_partial_index(
        "ingest_line_document_idx", "collection_id", "job_id", "document", "line", where="document IS NOT NULL"
    ),
    comment="Lines that wait for their ingest; a line leaves in the transaction that ingests it.",
)

ingest_document = Table(
    "ingest_document",
    metadata,
    build_inherited_collection_column(),
    require("job_id", Uuid),
    require("source", Text),
    require("missing", Boolean, comment="The importer no longer has it; another document may be its new version."),
    require("description", JSONB, comment="What its importer says of it."),
    PrimaryKeyConstraint("collection_id", "job_id", "source"),
    build_parent_key("job", "job_id"),
    comment="Documents that a job has whole; one leaves in the transaction that prepares its replacement.",
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
