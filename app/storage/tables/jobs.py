"""Work that waits: jobs with their lines, and first answers of keyed writes."""

from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.storage.tables.base import metadata, now, of, tenant

ingest_job = Table(
    "ingest_job",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("id", Uuid, nullable=False),
    Column("key_building", Text, comment="Of a re-key job: what base keys shall be made of; null: it ingests."),
    Column("revocation", JSONB, comment="Of a job that revokes verdicts: which ones; null: another job."),
    Column("status", Text, nullable=False, server_default=text("'receiving'")),
    Column("received", BigInteger, nullable=False, server_default=text("0")),
    Column("created", BigInteger, nullable=False, server_default=text("0")),
    Column("updated", BigInteger, nullable=False, server_default=text("0")),
    Column("unchanged", BigInteger, nullable=False, server_default=text("0")),
    Column("rejected", BigInteger, nullable=False, server_default=text("0")),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("error", Text),
    now("created_at"),
    now("updated_at"),
    Column("finished_at", TIMESTAMP(timezone=True)),
    PrimaryKeyConstraint("collection_id", "id"),
    Index(
        "ingest_job_open_idx",
        "created_at",
        postgresql_where=text("status IN ('receiving', 'queued', 'running')"),
    ),
    # At most one that is open: of two, the later would undo what the earlier one is still at.
    Index(
        "ingest_job_rekey_idx",
        "collection_id",
        unique=True,
        postgresql_where=text("key_building IS NOT NULL AND status IN ('queued', 'running')"),
    ),
    CheckConstraint("status IN ('receiving', 'queued', 'running', 'succeeded', 'failed')", name="status"),
    CheckConstraint("key_building IN ('full', 'title', 'abstract', 'keywords')", name="key_building"),
)

ingest_line = Table(
    "ingest_line",
    metadata,
    tenant(),
    Column("job_id", Uuid, nullable=False),
    Column("line", BigInteger, nullable=False),
    Column("passage", JSONB, nullable=False),
    PrimaryKeyConstraint("collection_id", "job_id", "line"),
    of("ingest_job", "job_id"),
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
    of("ingest_job", "job_id"),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("key", Text, nullable=False),
    Column("body_hash", LargeBinary, nullable=False),
    Column("answer", JSONB, nullable=False),
    now("created_at"),
    PrimaryKeyConstraint("collection_id", "key"),
    comment="First answers of keyed writes other than feedback, whose log keeps its own keys.",
)
