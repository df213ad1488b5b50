"""Scores that came in from other products."""

from sqlalchemy import (
    ARRAY,
    TIMESTAMP,
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
    text,
)

from engram.storage.tables.table_base import build_timestamp_column, metadata

pulled_score = Table(
    "pulled_score",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column(
        "principal",
        Text,
        nullable=False,
        server_default=text("'local'"),
        comment="Whose pull it is; those of others do not touch it.",
    ),
    Column("source", Text, nullable=False, comment="The name of the pull, such as langfuse@cloud.langfuse.com."),
    Column("score_id", Text, nullable=False),
    Column("judge", Text, nullable=False),
    Column("rating", Text, comment="Null: the score was deleted, and its rating revoked."),
    Column(
        "digest",
        Text,
        nullable=False,
        comment="SHA-256 of everything that the rating says; a change is sent again.",
    ),
    Column("revision", Integer, nullable=False, comment="How often it was sent; part of the Idempotency-Key."),
    Column("scored_at", TIMESTAMP(timezone=True), nullable=False),
    Column("queries", ARRAY(Uuid), nullable=False, comment="Queries that were rated."),
    build_timestamp_column("updated_at"),
    PrimaryKeyConstraint("collection_id", "principal", "source", "score_id"),
    CheckConstraint("rating IN ('up', 'down')", name="rating"),
    comment="Scores of other products that became ratings, as they were last sent.",
)
