"""Table of receipts of erasures."""

from sqlalchemy import (
    ARRAY,
    TIMESTAMP,
    Boolean,
    CheckConstraint,
    Column,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
)
from sqlalchemy.dialects.postgresql import JSONB

from engram.storage.tables.table_base import build_collection_column, build_timestamp_column, metadata, require

erasure = Table(
    "erasure",
    metadata,
    build_collection_column(),
    require("id", Uuid, comment="Id of the job that erased."),
    require("kind", Text),
    Column("salt", LargeBinary, comment="Random; with the name it gives the digest."),
    Column(
        "digest", LargeBinary, comment="SHA-256 of salt and name of the judge or principal; null: none was named."
    ),
    require("queries", ARRAY(Uuid), default="'{}'", comment="The erased queries, where these were named."),
    Column("since", TIMESTAMP(timezone=True)),
    Column("before", TIMESTAMP(timezone=True)),
    require("anonymised", Boolean, comment="Whether what verdicts taught stayed, under a random judge."),
    require("removed", JSONB, comment="Table -> rows that were removed or made anonymous."),
    require("backups", JSONB, comment="Backups of before, as the audit log names them, with their times."),
    build_timestamp_column("erased_at"),
    PrimaryKeyConstraint("collection_id", "id"),
    CheckConstraint("kind IN ('query', 'judge', 'principal', 'span')", name="kind"),
    comment="Receipts of erasures, without personal data.",
)
