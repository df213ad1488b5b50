"""Scores that came in from other products."""

from sqlalchemy import (
    ARRAY,
    TIMESTAMP,
    CheckConstraint,
    Column,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
)

from engram.storage.tables.table_base import (
    build_collection_column,
    build_principal_column,
    build_timestamp_column,
    metadata,
    require,
)

pulled_score = Table(
    "pulled_score",
    metadata,
    build_collection_column(),
    build_principal_column("The principal of the pull; pulls of other principals leave the row alone."),
    require("source", Text, comment="The name of the pull, such as langfuse@cloud.langfuse.com."),
    require("score_id", Text),
    require("judge", Text),
    Column("rating", Text, comment="Null: the score was deleted, and its rating revoked."),
    require("digest", Text, comment="SHA-256 of the whole rating; a changed rating is sent again."),
    require("revision", Integer, comment="How often the rating was sent; part of the Idempotency-Key."),
    require("scored_at", TIMESTAMP(timezone=True)),
    require("queries", ARRAY(Uuid), comment="Queries that were rated."),
    build_timestamp_column("updated_at"),
    PrimaryKeyConstraint("collection_id", "principal", "source", "score_id"),
    CheckConstraint("rating IN ('up', 'down')", name="rating"),
    comment="Scores of other products that became ratings, as they were last sent.",
)
