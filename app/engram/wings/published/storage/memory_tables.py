"""Memories of sentences."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKeyConstraint,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from engram.storage.tables.learning_tables import build_gain_budget_column
from engram.storage.tables.table_base import (
    build_inherited_collection_column,
    build_parent_key,
    build_partial_index,
    build_timestamp_column,
    build_vector_column,
    metadata,
    require,
)

sentence_memory = Table(
    "sentence_memory",
    metadata,
    build_inherited_collection_column(),
    require("sentence_id", BigInteger),
    require("channel", Text),
    build_vector_column("vector"),
    require("perplexity", Double),
    require("update_count", Integer),
    Column("time_expression_id", BigInteger, comment="For a time memory: the expression that it began as."),
    build_gain_budget_column(),
    build_timestamp_column("updated_at"),
    PrimaryKeyConstraint("collection_id", "sentence_id", "channel"),
    build_parent_key("sentence", "sentence_id"),
    # No cascade: the expression stays as long as a memory that began as it.
    ForeignKeyConstraint(
        ["collection_id", "time_expression_id"], ["time_expression.collection_id", "time_expression.id"]
    ),
    build_partial_index(
        "sentence_memory_time_idx", "collection_id", "time_expression_id", where="time_expression_id IS NOT NULL"
    ),
    CheckConstraint("channel IN ('task', 'time')", name="channel"),
    CheckConstraint("perplexity BETWEEN 0 AND 1", name="perplexity"),
    postgresql_with={"fillfactor": "50"},
    comment="One row for each sentence and channel that a verdict touched (GAM-RAG, Eq. 2).",
)
