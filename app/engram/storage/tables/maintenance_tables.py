"""Table of the audit log."""

from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Column,
    Identity,
    Index,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
)

from engram.storage.tables.table_base import build_timestamp_column, metadata

# It refers to no other table: an entry outlives what it is about.
audit_log = Table(
    "audit_log",
    metadata,
    Column("id", BigInteger, Identity(), nullable=False),
    build_timestamp_column("begun_at"),
    Column("ended_at", TIMESTAMP(timezone=True), comment="Null: its process was lost; what came of it is unknown."),
    Column("principal", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("client", Text, comment="The address that it came from."),
    Column("request_id", Text),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False, comment="The path, or what a command was given."),
    Column("body", Text, comment="The body, as far as it is kept."),
    Column("status", SmallInteger, comment="Of the answer, as HTTP has it."),
    PrimaryKeyConstraint("id"),
    Index(None, "tenant", "id"),
    comment="Administrative acts: who did what, when, and what came of it.",
)
